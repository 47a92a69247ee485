import { expect, test } from 'vitest'

import { FrameAccounting } from '../src/browser-camera/frameAccounting'
import { checkCounts } from '../src/figures/counts'

const MS = 1e6

/** FrameAccounting with frames 1 to n captured and, but for the last one, sent at instant 0. */
function withFrames(amount: number): FrameAccounting {
  const accounting = new FrameAccounting([[100, 1], [300, 0.3]])
  accounting.connected()
  for (let frame = 1; frame <= amount; frame += 1) {
    accounting.captured(frame, 0)
    if (frame < amount) accounting.sent(frame)
  }
  return accounting
}

test('every frame ends in exactly one way, and the counts add up at every moment', () => {
  const accounting = withFrames(6)
  const steps = [
    () => accounting.acked(1, true, 10 * MS),
    () => expect(accounting.answered(1, 60 * MS)).toBe(50 * MS),
    () => expect(accounting.answered(1, 61 * MS)).toBeNull(),
    () => accounting.answered(2, 200 * MS),
    () => accounting.answered(3, 400 * MS),
    () => accounting.drop(4, 'queue', 400 * MS),
    () => accounting.lost(500 * MS),
  ]
  for (const step of steps) {
    step()
    expect(checkCounts(accounting.counts()).unaccounted).toBe(0)
  }
  expect(accounting.counts()).toMatchObject({ captured: 6, accepted: 1, on_time: 1, late: 2, pending: 0, utility: 1.3 })
  expect(accounting.counts().dropped).toEqual({ queue: 1, lost: 1, sender: 1 })
  expect(accounting.skipped).toEqual({ offline: 1 })
})

test('a report counts from the hello, the counts from the start', () => {
  const accounting = withFrames(3)
  accounting.skip(3, 'window', 0)
  expect(accounting.report()).toEqual({ captured: 3, sent: 2, skipped: { window: 1 }, on_time: 0, late: 0 })
  accounting.connected()
  accounting.captured(4, 0)
  accounting.skip(4, 'infeasible', 0)
  expect(accounting.report()).toEqual({ captured: 1, sent: 0, skipped: { infeasible: 1 }, on_time: 0, late: 0 })
  expect(accounting.counts().captured).toBe(4)
})

test('recent means the last 10 s', () => {
  const accounting = withFrames(4)
  accounting.answered(1, 50 * MS)
  accounting.answered(2, 9_000 * MS)
  accounting.drop(3, 'queue', 10_000 * MS)
  expect(accounting.recent(10_000 * MS).onTimeShare).toBeCloseTo(1 / 3)
  expect(accounting.recent(15_000 * MS)).toMatchObject({ onTimeShare: 0, latency_ms: 9_000 })
  expect(accounting.recent(60_000 * MS)).toEqual({ onTimeShare: null, latency_ms: null, fps: null })
})
