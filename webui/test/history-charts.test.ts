import { expect, test } from 'vitest'

import apiPage from '../../docs/reference/http-api.md?raw'
import { chartsOf, isolated, newest, stacked, type Chart } from '../src/camera/charts'
import { joined } from '../src/camera/gaps'
import { instantText, RANGES, rangeOf } from '../src/camera/ranges'
import { classColour } from '../src/live/classColours'
import type { History } from '../src/camera/history'

/** The very document docs/reference/http-api.md shows. */
function documented(): History {
  const block = [...apiPage.matchAll(/```json\n([\s\S]*?)```/g)].find(([, text]) => text?.includes('"covered_ms"'))
  return JSON.parse(block?.[1] ?? '') as History
}

function chart(key: string, history = documented(), present = { slo_ms: 300, rate_hz: 10 } as { slo_ms: number | null; rate_hz: number | null }): Chart {
  const found = chartsOf(history, present).find((one) => one.key === key)
  if (!found) throw new Error(`no chart ${key}`)
  return found
}

function words(of: Chart, at: number): Record<string, string> {
  return Object.fromEntries(of.lines.map(({ name, words }) => [name, words?.(at).replaceAll('\u202f', ' ') ?? '']))
}

function drawn(of: Chart, name: string): readonly (number | null)[] | undefined {
  return of.lines.find((line) => line.name === name)?.drawn
}

test('the latency of a camera that the box fetches begins with fetching', () => {
  const found = chartsOf(documented(), { slo_ms: 300, rate_hz: 10, fetched: true }).find(({ key }) => key === 'latency')
  expect(found?.lines.map(({ name }) => name)).toEqual(['return', 'inference', 'queue', 'fetching', 'P99', 'deadline now'])
})

test('the documented history tells its own figures', () => {
  expect(words(chart('latency'), 0)).toEqual({
    network: '21 ms', queue: '3.1 ms', inference: '8.0 ms', return: '1.0 ms', P99: '80 ms', 'deadline now': '300 ms',
  })
  expect(words(chart('bandwidth'), 0)).toEqual({ used: '1.6 Mbit/s', measured: '4.1 Mbit/s', estimated: '3.2 Mbit/s' })
  expect(words(chart('variant'), 0)).toEqual({ 'street-256': '100 %' })
  expect(words(chart('fps'), 0)).toEqual({ answered: '9.8', captured: '10.0', 'wanted now': '10' })
  expect(words(chart('missed'), 0)).toEqual({ sender: '2', queue: '1' })
  expect(words(chart('objects'), 0)).toEqual({ person: '6.9', car: '2.1' })
  expect(words(chart('zones'), 0)).toEqual({ yard: '1.7' })
  expect(words(chart('crossings'), 0)).toEqual({ 'entry in': '3', 'entry out': '1' })
})

test('classes have the colours of their boxes, and their absence is said', () => {
  for (const { name, colour } of chart('objects').lines) expect(colour).toContain(classColour(name))
  expect(chart('objects', { ...documented(), classes: {} }).note).toBe('No object was found')
})

test('crossings are drawn by the minute', () => {
  expect(drawn(chart('crossings'), 'entry in')?.[0]).toBeCloseTo(12)
})

test('without zones and lines there is no chart of them', () => {
  const keys = chartsOf({ ...documented(), zones: {}, lines: {} }, { slo_ms: 300, rate_hz: 10 }).map(({ key }) => key)
  expect(keys).toEqual(['objects', 'latency', 'bandwidth', 'variant', 'fps', 'missed'])
})

test('the parts of latency reach up to the median of the whole', () => {
  const of = chart('latency')
  expect(drawn(of, 'return')?.[0]).toBeCloseTo(33.2)
  expect(drawn(of, 'network')?.[0]).toBeCloseTo((33.2 * 21) / 33.1)
})

test('what was missed is a share of what was captured, one reason upon the other', () => {
  const of = chart('missed')
  expect(drawn(of, 'queue')?.[0]).toBeCloseTo(100 / 150)
  expect(drawn(of, 'sender')?.[0]).toBeCloseTo(300 / 150)
})

test('a gap stays a gap in every chart', () => {
  for (const { lines } of chartsOf(documented(), { slo_ms: null, rate_hz: null }))
    for (const { name, drawn } of lines) expect(drawn[1], name).toBeNull()
})

test('a deadline far above all that was measured is left out: it would flatten the rest', () => {
  expect(drawn(chart('latency', documented(), { slo_ms: 60_000, rate_hz: null }), 'deadline now')).toBeUndefined()
})

test('a stack is known where any of its parts is', () => {
  expect(stacked([[1, null, null], [2, 3, null]])).toEqual([[1, null, null], [3, 3, null]])
})

test('a lone value is drawn as a point', () => {
  expect(isolated([1, null, 2, null, 3, 4, null])).toEqual([0, 2])
  expect(isolated([null, null])).toEqual([])
})

test('the newest step is the last of which anything was kept', () => {
  expect(newest(documented())).toBe(0)
  expect(newest({ ...documented(), covered_ms: [null] })).toBe(-1)
})

test('a step that was counted with its neighbour is no gap, and no count is lost', () => {
  const of = (covered_ms: Array<number | null>): History => ({
    ...documented(),
    from_ms: 0,
    to_ms: 1000 * covered_ms.length,
    segments: [{ level: 'second', from_ms: 0, step_ms: 1000, points: covered_ms.length }],
    at_ms: covered_ms.map((_, at) => 1000 * at),
    covered_ms,
    captured: covered_ms.map((covered) => covered && covered / 100),
  })
  const told = joined(of([1000, null, 2010, 1000, 1990, null, 990, null, null, 1000]))
  expect(told.at_ms).toEqual([0, 1000, 3000, 4000, 5000, 7000, 8000, 9000])
  expect(told.covered_ms).toEqual([1000, 2010, 1000, 1990, 990, null, null, 1000])
  expect(told.captured).toEqual([10, 20.1, 10, 19.9, 9.9, null, null, 10])
  // Two neighbours may share it.
  expect(joined(of([1000, 1480, null, 1510, 1000])).at_ms).toEqual([0, 1000, 2000, 4000])
  const whole = of([1000, null, 1400, 1000, null])
  expect(joined(whole)).toBe(whole)
})

test('a range is asked again about as often as it can show anything new', () => {
  expect(RANGES.map(({ key }) => key)).toEqual(['1m', '15m', '1h', '6h', '24h', '7d', '30d'])
  expect(rangeOf('1m').refresh_ms).toBe(2_000)
  for (const { span_ms, refresh_ms } of RANGES.slice(1)) {
    expect(refresh_ms).toBeLessThanOrEqual(Math.min(span_ms / 30, 600_000))
    expect(refresh_ms).toBeGreaterThanOrEqual(Math.min(60_000, span_ms / 300))
  }
  expect(rangeOf(undefined)).toBe(rangeOf('nonsense'))
})

test('an instant is told as precisely as its range needs it', () => {
  const at_ms = new Date(2026, 10, 21, 10, 28, 5).getTime()
  expect(instantText(at_ms, 60_000)).toBe('10:28:05')
  expect(instantText(at_ms, 6 * 3_600_000)).toBe('10:28')
  expect(instantText(at_ms, 7 * 86_400_000)).toBe('21 Nov, 10:28')
})
