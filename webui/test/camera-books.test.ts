import { expect, test } from 'vitest'

import { Books } from '../src/camera/books'
import { checkCounts } from '../src/counts'

const MS = 1e6

/** Books with frames 1 to n captured and, but for the last one, sent at instant 0. */
function withFrames(amount: number): Books {
  const books = new Books([[100, 1], [300, 0.3]])
  books.connected()
  for (let frame = 1; frame <= amount; frame += 1) {
    books.captured(frame, 0)
    if (frame < amount) books.sent(frame)
  }
  return books
}

test('every frame ends in exactly one way, and the counts add up at every moment', () => {
  const books = withFrames(6)
  const steps = [
    () => books.acked(1, true, 10 * MS),
    () => expect(books.answered(1, 60 * MS)).toBe(50 * MS),
    () => expect(books.answered(1, 61 * MS)).toBeNull(),
    () => books.answered(2, 200 * MS),
    () => books.answered(3, 400 * MS),
    () => books.drop(4, 'queue', 400 * MS),
    () => books.lost(500 * MS),
  ]
  for (const step of steps) {
    step()
    expect(checkCounts(books.counts()).unaccounted).toBe(0)
  }
  expect(books.counts()).toMatchObject({ captured: 6, accepted: 1, on_time: 1, late: 2, pending: 0, utility: 1.3 })
  expect(books.counts().dropped).toEqual({ queue: 1, lost: 1, sender: 1 })
  expect(books.skipped).toEqual({ offline: 1 })
})

test('a report counts from the hello, the counts from the start', () => {
  const books = withFrames(3)
  books.skip(3, 'window', 0)
  expect(books.report()).toEqual({ captured: 3, sent: 2, skipped: { window: 1 }, on_time: 0, late: 0 })
  books.connected()
  books.captured(4, 0)
  books.skip(4, 'infeasible', 0)
  expect(books.report()).toEqual({ captured: 1, sent: 0, skipped: { infeasible: 1 }, on_time: 0, late: 0 })
  expect(books.counts().captured).toBe(4)
})

test('recent means the last 10 s', () => {
  const books = withFrames(4)
  books.answered(1, 50 * MS)
  books.answered(2, 9_000 * MS)
  books.drop(3, 'queue', 10_000 * MS)
  expect(books.recent(10_000 * MS).onTimeShare).toBeCloseTo(1 / 3)
  expect(books.recent(15_000 * MS)).toMatchObject({ onTimeShare: 0, latency_ms: 9_000 })
  expect(books.recent(60_000 * MS)).toEqual({ onTimeShare: null, latency_ms: null, fps: null })
})
