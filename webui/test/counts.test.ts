import { expect, test } from 'vitest'

import { checkCounts, dropLines, misses } from '../src/figures/counts'

const COUNTS = { captured: 9000, accepted: 8950, on_time: 8940, late: 4, pending: 3, dropped: { sender: 50, queue: 3 }, utility: 8940, mismatches: 14 }

test('every captured frame has exactly one outcome or is still pending', () => {
  expect(checkCounts(COUNTS)).toEqual({ dropped: 53, unaccounted: 0 })
})

test('a frame too many or too few is told', () => {
  expect(checkCounts({ ...COUNTS, captured: 9002 }).unaccounted).toBe(2)
  expect(checkCounts({ ...COUNTS, dropped: { sender: 51, queue: 3 } }).unaccounted).toBe(-1)
})

test('what the plan did not ask for is no miss', () => {
  expect(misses({ plan: 300, queue: 2 })).toEqual({ queue: 2 })
})

test('reasons are listed by how often they happened, without those that did not', () => {
  const lines = dropLines({ queue: 3, invalid: 0, sender: 50, 'a newer reason': 3 })
  expect(lines.map(({ reason, amount }) => [reason, amount])).toEqual([['sender', 50], ['a newer reason', 3], ['queue', 3]])
  expect(lines[0]?.meaning).toContain('not sent')
  expect(lines[1]?.meaning).toBe('a newer reason')
})
