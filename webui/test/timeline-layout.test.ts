// Batches, drops and queues lie where their instants say, however many there are.

import { describe, expect, test } from 'vitest'

import { variantColour } from '../src/scheduler/colours'
import { boxAt, boxesOf, boxOf, marksOf, neighbour, queueLines } from '../src/scheduler/layout'
import type { Batch, DroppedRequest, QueueEntry } from '../src/scheduler/timeline'
import { xOf } from '../src/scheduler/view'
import { batch } from './timeline-scene'

const VIEW = { end_ms: 1_000, span_ms: 1_000 }

/** Numbers that look random and are the same each time. */
function drawing(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}

function lane(seed: number, amount: number): Batch[] {
  const draw = drawing(seed)
  let at_ms = 0
  return Array.from({ length: amount }, (_, index) => {
    const start_ms = at_ms + draw() * draw() * 40
    at_ms = start_ms + 0.2 + draw() * 30
    return batch(index + 1, start_ms, at_ms, { variant: draw() < 0.5 ? 'street-128' : 'street-256' })
  })
}

describe('boxes of an executor', () => {
  test('lie where their batches ran', () => {
    const [box] = boxesOf([batch(1, 250, 500)], VIEW, 800)
    expect(box).toMatchObject({ x_px: 200, width_px: 200, count: 1, troubled: false })
  })

  test('stand for exactly the batches that reach into the view, in order, without covering each other', () => {
    for (let seed = 1; seed <= 40; seed += 1) {
      const batches = lane(seed, 200)
      const draw = drawing(seed + 1_000)
      const view = { end_ms: 200 + draw() * 3_000, span_ms: 50 + draw() * 3_000 }
      const boxes = boxesOf(batches, view, 600)
      const seen = batches.filter(
        (each) => (each.ended_ms ?? 0) >= view.end_ms - view.span_ms && (each.started_ms ?? 0) <= view.end_ms,
      )
      expect(boxes.reduce((sum, { count }) => sum + count, 0)).toBe(seen.length)
      boxes.forEach((box, at) => {
        const next = boxes[at + 1]
        if (next) expect(next.x_px).toBeGreaterThanOrEqual(box.x_px + box.width_px - 1e-6)
        if (box.count === 1) expect(box.x_px).toBeCloseTo(xOf(box.batch.started_ms ?? 0, view, 600), 6)
      })
    }
  })

  test('are few where many batches share a pixel', () => {
    const many = Array.from({ length: 20_000 }, (_, at) => batch(at + 1, at / 20, at / 20 + 0.04))
    const boxes = boxesOf(many, VIEW, 500)
    expect(boxes.length).toBeLessThan(20)
    expect(boxes.reduce((sum, { count }) => sum + count, 0)).toBe(20_000)
  })

  test('keep it in mind when one of several went wrong', () => {
    const late = batch(2, 10.1, 10.2, { outcomes: ['late'] })
    const [box] = boxesOf([batch(1, 10, 10.1), late, batch(3, 10.2, 10.3)], VIEW, 500)
    expect(box).toMatchObject({ count: 3, troubled: true })
    expect(boxOf(batch(4, 0, 1, { outcomes: ['on_time', 'failed'] }), VIEW, 500).troubled).toBe(true)
  })

  test('of different variants are never one', () => {
    const boxes = boxesOf([batch(1, 10, 10.1), batch(2, 10.1, 10.2, { variant: 'street-608' })], VIEW, 500)
    expect(boxes).toHaveLength(2)
  })
})

test('a batch that runs reaches to the edge', () => {
  const box = boxOf(batch(1, 900, null), VIEW, 500)
  expect([box.x_px, box.width_px]).toEqual([450, 50])
})

test('the pointer finds the box under it, or the nearest in reach', () => {
  const boxes = boxesOf([batch(1, 100, 200), batch(2, 300, 400)], VIEW, 1_000)
  expect(boxAt(boxes, 150, 3)?.batch.batch).toBe(1)
  expect(boxAt(boxes, 297, 3)?.batch.batch).toBe(2)
  expect(boxAt(boxes, 250, 3)).toBeNull()
  expect(boxAt(boxes, 260, 60)?.batch.batch).toBe(2)
})

test('drops that would cover each other are one mark, and none is lost', () => {
  const drops = [100, 104, 130, 700, 2_000].map((at_ms) => ({ at_ms }) as DroppedRequest)
  const marks = marksOf(drops, VIEW, 1_000, 9)
  expect(marks.map(({ x_px, drops: of }) => [x_px, of.length])).toEqual([[100, 2], [130, 1], [700, 1]])
})

test('a queue is drawn in steps, beginning with what it was before the view', () => {
  const queues: QueueEntry[] = [
    [-500, { a: 1 }], [-100, { a: 2 }], [200, { a: 2, b: 1 }], [400, { b: 3 }], [600, {}], [2_000, { c: 9 }],
  ]
  const { lines, longest } = queueLines(queues, VIEW, 1_000)
  expect(longest).toBe(3)
  expect(lines).toEqual([
    { variant: 'a', steps: [{ x_px: -100, length: 2 }, { x_px: 400, length: 0 }] },
    { variant: 'b', steps: [{ x_px: 200, length: 1 }, { x_px: 400, length: 3 }, { x_px: 600, length: 0 }] },
  ])
})

test('going from batch to batch stops at both ends', () => {
  const batches = [batch(5, 1, 2), batch(6, 3, 4)]
  expect(neighbour(batches, 5, 1)?.batch).toBe(6)
  expect(neighbour(batches, 6, 1)?.batch).toBe(6)
  expect(neighbour(batches, 5, -1)?.batch).toBe(5)
  expect(neighbour(batches, null, -1)?.batch).toBe(6)
  expect(neighbour([], null, 1)).toBeNull()
})

test('every variant of a large family has a colour of its own that is not red or amber', () => {
  const variants = Array.from({ length: 24 }, (_, at) => `street-${128 + 32 * at}`)
  for (const dark of [false, true]) {
    const fills = variants.map((variant) => variantColour(variant, variants, dark).fill)
    expect(new Set(fills).size).toBe(24)
    for (const fill of fills) {
      const hue = Number(fill.slice(0, -1).split(' ').at(-1))
      expect(hue).toBeGreaterThanOrEqual(150)
      expect(hue).toBeLessThanOrEqual(340)
    }
  }
})

/** The relative luminance (WCAG) of a colour in oklch, as a screen in sRGB shows it. */
function luminance(lightness: number, chroma: number, hue: number): number {
  const [a, b] = [chroma * Math.cos((hue * Math.PI) / 180), chroma * Math.sin((hue * Math.PI) / 180)]
  const [l, m, s] = [[0.3963377774, 0.2158037573], [-0.1055613458, -0.0638541728], [-0.0894841775, -1.291485548]]
    .map(([ofA, ofB]) => (lightness + (ofA as number) * a + (ofB as number) * b) ** 3) as [number, number, number]
  const red = 4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s
  const green = -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s
  const blue = -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s
  const [r, g, bl] = [red, green, blue].map((part) => Math.min(1, Math.max(0, part))) as [number, number, number]
  return 0.2126 * r + 0.7152 * g + 0.0722 * bl
}

test.each([true, false])('what is written on a batch can be read (dark: %s)', (dark) => {
  const variants = Array.from({ length: 60 }, (_, n) => `street-${n}`)
  const INKS: Readonly<Record<string, number>> = { '#ffffff': 1, '#101614': 0.0076 }
  for (const variant of variants) {
    const { fill, ink } = variantColour(variant, variants, dark)
    const [lightness, chroma, hue] = (/oklch\((.*)\)/.exec(fill)?.[1] ?? '').split(' ').map(Number) as [number, number, number]
    const [low, high] = [luminance(lightness, chroma, hue), INKS[ink] as number].sort((a, b) => a - b) as [number, number]
    expect((high + 0.05) / (low + 0.05), fill).toBeGreaterThanOrEqual(4.5)
  }
})
