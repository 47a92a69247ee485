// Puts situations on standard input before the sender's window of the browser camera, and prints what it decides.
//
// tests/link/test_sender_in_browser.py makes the situations, and compares with the window in Python.

import { text } from 'node:stream/consumers'

import { runnerImport } from 'vite'

const { module } = await runnerImport('./src/browser-camera/sender.ts')
const cases = JSON.parse(await text(process.stdin))

const decided = cases.map(({ options, events }) => {
  const window = new module.SenderWindow(options)
  return events.map(({ event, given, at_ns }) => ({
    decisions: window[event](...given) ?? [],
    bandwidth_bps: window.bandwidth_bps(at_ns),
    waiting: window.waiting,
    unacknowledged: window.unacknowledged,
    captured: window.capturedTotal,
    sent: window.sentTotal,
    skipped: { ...window.skipped },
  }))
})
process.stdout.write(JSON.stringify(decided))
