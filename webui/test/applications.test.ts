import { expect, test } from 'vitest'

import { band, mostUsed, scaleMs, shownMs, verdict } from '../src/overview/applications'
import type { AppLatency } from '../src/api/types'

function times(p50: number, p99: number, profile50 = 8, profile99 = 12): AppLatency {
  return {
    app: 'gates',
    variant: 'street-256',
    executor: 'cpu/0',
    count: 9,
    measured_ms: { p50, p99 },
    profile_ms: { p50: profile50, p99: profile99 },
    expected_ms: { p50, p99 },
  }
}

test('the scale holds the longest band, measured or profiled', () => {
  expect(scaleMs([times(8, 10), times(8, 25)])).toBeCloseTo(26)
  expect(scaleMs([times(8, 10)])).toBeCloseTo(12.48)
  expect(scaleMs([])).toBe(0)
})

test('a band runs from the median to the 99th percentile', () => {
  expect(band({ p50: 5, p99: 10 }, 20)).toEqual({ left: 25, width: 25 })
})

test('a band without spread is seen, and none leaves the scale', () => {
  expect(band({ p50: 5, p99: 5 }, 20)).toEqual({ left: 25, width: 0.8 })
  expect(band({ p50: 20, p99: 20 }, 20)).toEqual({ left: 99.2, width: 0.8 })
  expect(band({ p50: 0, p99: 0 }, 0)).toEqual({ left: 0, width: 0.8 })
})

test('the verdict follows the medians', () => {
  expect(verdict(times(8.1, 40))).toBe('as profiled')
  expect(verdict(times(9.7, 12))).toBe('slower')
  expect(verdict(times(6.6, 12))).toBe('faster')
})

test('what has not run since the start is shown as it is expected', () => {
  const remembered = { ...times(9, 30), count: 0, measured_ms: null }
  expect(verdict(remembered)).toBe('remembered')
  expect(shownMs(remembered)).toEqual({ p50: 9, p99: 30 })
  expect(scaleMs([remembered])).toBeCloseTo(31.2)
})

test('the most used are kept, in an order of names in which 96 comes before 128', () => {
  const of = (variant: string, count: number) => ({ ...times(1, 2), variant, count })
  const all = [of('street-128', 3), of('street-320', 1), of('street-96', 2)]
  expect(mostUsed(all, 2).map(({ variant }) => variant)).toEqual(['street-96', 'street-128'])
  expect(mostUsed(all, 12)).toHaveLength(3)
})
