import { expect, test } from 'vitest'

import { laterNote, scaleMs, segments, stageWord } from '../src/figures/latency'

const P99 = { network: 60, queue: 9, inference: 12, return: 2, total: 80 }

test('the scale leaves room beyond the deadline and holds the longest bar', () => {
  expect(scaleMs(300, [33, 80])).toBe(375)
  expect(scaleMs(300, [33, 1000])).toBe(1050)
  expect(scaleMs(300, [null, undefined])).toBe(375)
})

test('the bar ends at the measured total although the parts add up to more', () => {
  const parts = segments(P99, 400)
  expect(parts.map((part) => part.stage)).toEqual(['network', 'queue', 'inference', 'return'])
  expect(parts.reduce((sum, part) => sum + part.width, 0)).toBeCloseTo(20)
  expect(parts[0]?.ms).toBe(60)
})

test('what is not known yet has no bar, and an unknown part no width', () => {
  expect(segments({ network: null, queue: null, inference: null, return: null, total: null }, 400)).toEqual([])
  const parts = segments({ ...P99, network: null, total: null }, 46)
  expect(parts.map((part) => part.width)).toEqual([0, (9 / 46) * 100, (12 / 46) * 100, (2 / 46) * 100])
})

test('later deadlines are told with what they are worth', () => {
  expect(laterNote([])).toBe('')
  expect(laterNote([[300, 0.3], [500, 0.1]])).toBe(', worth 0.3 until 300\u202fms, worth 0.1 until 500\u202fms')
})

test('what a fetched camera takes until its picture is there is not called a network', () => {
  expect(stageWord('network', true)).toBe('fetching')
  expect(stageWord('network', false)).toBe('network')
  expect(stageWord('queue', true)).toBe('queue')
})
