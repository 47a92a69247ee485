// Zooming and panning keep what a person looks at, the clock runs smoothly, and times are round.

import { describe, expect, test } from 'vitest'

import {
  advanced, atX, panned, showing, SPAN_MAX_MS, SPAN_MIN_MS, spanText, ticks, timeOfDay, within, xOf, zoomed,
} from '../src/scheduler/view'

const VIEW = { end_ms: 100_000, span_ms: 10_000 }

describe('zooming', () => {
  test.each([0, 0.25, 0.5, 1])('keeps the instant at a share of %d where it is', (anchor) => {
    for (const factor of [0.5, 1.5, 3, 40]) {
      const after = zoomed(VIEW, factor, anchor)
      expect(atX(anchor * 800, after, 800)).toBeCloseTo(atX(anchor * 800, VIEW, 800), 6)
      expect(after.span_ms).toBeCloseTo(10_000 / factor, 6)
    }
  })

  test('ends at a minute and at a twentieth of a second', () => {
    expect(zoomed(VIEW, 1e-9, 0.5).span_ms).toBe(SPAN_MAX_MS)
    expect(zoomed(VIEW, 1e9, 0.5).span_ms).toBe(SPAN_MIN_MS)
    expect(atX(400, zoomed(VIEW, 1e9, 0.5), 800)).toBeCloseTo(95_000, 6)
  })

  test('in and out again is where it was', () => {
    const back = zoomed(zoomed(VIEW, 7, 0.3), 1 / 7, 0.3)
    expect(back.end_ms).toBeCloseTo(VIEW.end_ms, 6)
    expect(back.span_ms).toBeCloseTo(VIEW.span_ms, 6)
  })
})

test('a place on the screen is an instant, and back', () => {
  for (const x_px of [0, 17.5, 799]) expect(xOf(atX(x_px, VIEW, 800), VIEW, 800)).toBeCloseTo(x_px, 6)
  expect(xOf(100_000, VIEW, 800)).toBe(800)
  expect(xOf(90_000, VIEW, 800)).toBe(0)
})

test('panning stays within the last minute', () => {
  const range = { from_ms: 40_000, to_ms: 100_000 }
  expect(within(panned(VIEW, 5_000), range).end_ms).toBe(100_000)
  expect(within(panned(VIEW, -1_000), range).end_ms).toBe(99_000)
  expect(within(panned(VIEW, -1e6), range)).toEqual({ end_ms: 50_000, span_ms: 10_000 })
  expect(within({ end_ms: 0, span_ms: 60_000 }, range).end_ms).toBe(100_000)
})

test('what is to be seen comes into view with room around it, and moves nothing when it is there', () => {
  expect(showing(VIEW, 95_000, 95_020)).toBe(VIEW)
  expect(showing(VIEW, 80_000, 80_020).end_ms).toBe(89_000)
  expect(showing(VIEW, 99_990, 100_010).end_ms).toBe(101_010)
})

describe('the shown clock', () => {
  test('runs at real speed when it is right', () => {
    expect(advanced(1_000, 1_016, 16)).toBe(1_016)
  })

  test('catches up without leaps, and never runs back', () => {
    let shown_ms = 1_000
    for (let frame = 1; frame <= 300; frame += 1) {
      const next_ms = advanced(shown_ms, 1_200 + frame * 16, 16)
      expect(next_ms - shown_ms).toBeGreaterThanOrEqual(16)
      expect(next_ms - shown_ms).toBeLessThan(24)
      shown_ms = next_ms
    }
    expect(shown_ms).toBeCloseTo(1_200 + 300 * 16, 0)
    expect(advanced(5_000, 4_500, 16)).toBe(5_000)
  })

  test('jumps where the box is elsewhere altogether', () => {
    expect(advanced(5_000, 900_000, 16)).toBe(900_000)
    expect(advanced(900_000, 5_000, 16)).toBe(5_000)
  })
})

describe('times along the view', () => {
  test('are round instants of the wall clock, far enough apart', () => {
    const offset_ms = 1_790_000_000_123
    for (const span_ms of [50, 300, 2_000, 10_000, 60_000]) {
      for (const width_px of [320, 1_400]) {
        const found = ticks({ end_ms: 100_000, span_ms }, width_px, offset_ms)
        expect(found.length).toBeGreaterThan(0)
        found.forEach(({ x_px }, at) => {
          expect(x_px).toBeGreaterThanOrEqual(0)
          expect(x_px).toBeLessThanOrEqual(width_px)
          if (at > 0) expect(x_px - (found[at - 1]?.x_px ?? 0)).toBeGreaterThanOrEqual(83.9)
        })
        const first_ms = atX(found[0]?.x_px ?? 0, { end_ms: 100_000, span_ms }, width_px) + offset_ms
        expect(Math.abs(first_ms - Math.round(first_ms / 5) * 5)).toBeLessThan(0.01)
      }
    }
  })

  test('have milliseconds only where these differ', () => {
    const at_ms = new Date(2026, 10, 21, 9, 5, 7, 45).getTime()
    expect(timeOfDay(at_ms, false)).toBe('09:05:07')
    expect(timeOfDay(at_ms, true)).toBe('09:05:07.045')
  })
})

test('spans are short texts', () => {
  expect([50, 999, 1_000, 1_500, 9_970, 60_000].map(spanText)).toEqual(
    ['50 ms', '999 ms', '1 s', '1.5 s', '10 s', '60 s'].map((text) => text.replace(' ', '\u202f')),
  )
})
