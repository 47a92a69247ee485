// What the browser's window adds to the daemon's; tests/link/test_sender_in_browser.py compares all the rest.

import { expect, test } from 'vitest'

import { Pace, SenderWindow } from '../src/browser-camera/sender'

const MS = 1e6

/** A window on a link of 8 Mbit/s, as it was seen to carry one frame of 10 kB. */
function knowing(): SenderWindow {
  const window = new SenderWindow({ width_px: 640, height_px: 360, slo_ns: 300 * MS, lastSlo_ns: 300 * MS, rate_hz: 10, unacknowledged_max: 2 })
  window.captured(1, 0, 0)
  window.encoded(1, 10_000, 640 * 360, 0)
  window.acknowledged(1, 10 * MS, 0)
  return window
}

function sentWidth(window: SenderWindow, unsent_bytes: number): number | string {
  const [decision] = window.captured(2, 100 * MS, 100 * MS, unsent_bytes)
  return decision?.kind === 'send' ? decision.width_px : (decision?.reason ?? 'waiting')
}

test('what has not left the browser counts against the deadline', () => {
  expect(sentWidth(knowing(), 0)).toBe(640)
  const somewhat = sentWidth(knowing(), 288_000)
  expect(somewhat).toBeGreaterThan(0)
  expect(somewhat).toBeLessThan(640)
})

test('a source of 30 Hz is thinned to any rate below, evenly', () => {
  for (const rate_hz of [2, 7, 10, 15]) {
    const pace = new Pace()
    const taken = Array.from({ length: 300 }, (_, at) => at).filter((at) => pace.takes(at * 33.333 * MS, rate_hz))
    expect(Math.abs(taken.length - 10 * rate_hz)).toBeLessThanOrEqual(3)
  }
})

test('a rate that is raised again holds at once', () => {
  const pace = new Pace()
  const takenAt = (from_s: number, until_s: number, rate_hz: number) =>
    Array.from({ length: (until_s - from_s) * 10 }, (_, at) => from_s + at / 10).filter((at_s) => pace.takes(at_s * 1e9, rate_hz))
  expect(takenAt(0, 20, 10)).toHaveLength(200)
  expect(takenAt(20, 58, 0.02)).toHaveLength(1) // a quarter of its period early
  expect(takenAt(58, 68, 10)).toHaveLength(100)
})
