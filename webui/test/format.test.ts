import { afterEach, expect, test, vi } from 'vitest'

import { bitrate, clockTime, count, duration, microseconds, milliseconds, percent, plural, rate } from '../src/ui/format'

/** Without the narrow no-break spaces, which are hard to see in a test. */
const plain = (text: string) => text.replaceAll('\u202f', ' ')

test.each([
  [1.577, '158 %'],
  [1, '100 %'],
  [0.99999, '99.9 %'],
  [0.998, '99.8 %'],
  [0.29, '29.0 %'],
  [0, '0.0 %'],
  [null, '–'],
])('a share of %s is %s: all is said only of all', (share, text) => {
  expect(plain(percent(share))).toBe(text)
})

test.each([
  [0.04, '0.0 ms'],
  [7.93, '7.9 ms'],
  [9.96, '10 ms'],
  [1234.4, '1,234 ms'],
  [-451.6, '-452 ms'],
  [undefined, '–'],
  [Number.NaN, '–'],
])('%s is %s', (ms, text) => {
  expect(plain(milliseconds(ms))).toBe(text)
})

test.each([
  [0, '0 kbit/s'],
  [850_000, '850 kbit/s'],
  [999_600, '1.0 Mbit/s'],
  [1_900_000, '1.9 Mbit/s'],
  [94_000_000, '94 Mbit/s'],
  [2_500_000_000, '2.5 Gbit/s'],
  [null, '–'],
])('%s bit/s is %s', (bps, text) => {
  expect(plain(bitrate(bps))).toBe(text)
})

test.each([
  [0.4, '0 s'],
  [59, '59 s'],
  [312, '5 min 12 s'],
  [3600, '1 h'],
  [90_061, '1 d 1 h'],
  [null, '–'],
])('%s seconds are %s', (seconds, text) => {
  expect(plain(duration(seconds))).toBe(text)
})

test('small ones', () => {
  expect(plain(microseconds(18.4))).toBe('18 µs')
  expect(plain(microseconds(2500))).toBe('2.5 ms')
  expect(rate(10)).toBe('10')
  expect(rate(9.87)).toBe('9.9')
  expect(count(9000)).toBe('9,000')
  expect([plural(1, 'object'), plural(1200, 'object')]).toEqual(['1 object', '1,200 objects'])
})

afterEach(() => void vi.useRealTimers())

test('a time of another day has its day', () => {
  vi.useFakeTimers({ now: new Date(2026, 2, 5, 0, 10) })
  expect(clockTime(new Date(2026, 2, 5, 0, 9, 7).getTime())).toBe('00:09:07')
  expect(clockTime(new Date(2026, 2, 4, 23, 59, 59).getTime())).toBe('4 Mar, 23:59:59')
})
