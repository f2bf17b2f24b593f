// Package dashboard serves the pages for people at /ui (docs/dashboard.md). It has no rules of its own: it shows what
// packages manager and admin return, and package web, its host, gives it the limits, errors and streams of the HTTP
// API.
//
// A page is written as HTML on the server, and works without JavaScript. Every state of a page is in its address. The
// script only adds what is live: the address of a page, read as text/event-stream, is a stream of its main part. Users
// with the same rights share what a page loads (views.go) and its stream (live.go), so that many open pages cost Redis
// no more than one.
//
// To add a page:
//
//  1. Write a function that loads its data, such as loadWorkers, in a file with the name of the page. It reads only the
//     first fields of the visit.
//  2. Write templates/NAME.html, which defines "main". Each part that changes while the page is open is an element with
//     an id and data-live. Show texts of users and programs with line or text. Forms need no hidden fields: <button
//     form="act" formaction="…"> sends the form of the frame.
//  3. Add a row to pages, and one to actions for each thing that the page changes. A button that a role may not press
//     must not be on its page: ask .Rights.
//  4. Add the page to the table in pages_test.go, which checks it with hostile data, with each role, and in the
//     browser.
package dashboard
