import { expect, test } from 'vitest'

import { added, moved, shareOf, STEP, without, withPoint, type Shapes } from '../src/camera/drawing'

const SHAPES: Shapes = {
  zones: [{ name: 'yard', points: [[0, 0], [1, 0], [1, 1]], classes: ['car'], min_dwell_s: 5 }],
  lines: [{ name: 'entry', points: [[0, 0.5], [1, 0.5]] }],
}

test('a new zone is sent with those that are there, and without their counts', () => {
  const counted = { ...SHAPES, zones: SHAPES.zones.map((zone) => ({ ...zone, counts: { car: 2 } })) }
  const change = added(counted, 'zone', { name: ' gate ', classes: 'truck, bus,', dwell: '2,5' }, [[0.12345678, 0], [1, 0], [1, 1]])
  expect(change.zones).toEqual([...SHAPES.zones, { name: 'gate', points: [[0.1235, 0], [1, 0], [1, 1]], classes: ['truck', 'bus'], min_dwell_s: 2.5 }])
  expect(change.lines).toEqual([{ name: 'entry', points: [[0, 0.5], [1, 0.5]], classes: [] }])
})

test('what is removed is not sent', () => {
  expect(without(SHAPES, 'yard').zones).toEqual([])
  expect(without(SHAPES, 'entry').lines).toEqual([])
  expect(without(SHAPES, 'entry').zones).toEqual(SHAPES.zones)
})

test('a third point begins another line', () => {
  expect(withPoint('line', [[0, 0], [1, 1]], [0.5, 0.5])).toEqual([[0.5, 0.5]])
  expect(withPoint('zone', [[0, 0], [1, 1]], [0.5, 0.5])).toHaveLength(3)
})

test('arrows move the crosshair, but not out of the picture', () => {
  expect(moved([0.5, 0.5], 'ArrowLeft')).toEqual([0.5 - STEP, 0.5])
  expect(moved([0.5, 1], 'ArrowDown')).toEqual([0.5, 1])
  expect(moved([0.5, 0.5], 'a')).toBeNull()
})

test('a click beside the picture is on its edge', () => {
  const frame = { width: 1600, height: 900 }
  expect(shareOf({ x: 800, y: 450 }, frame, { width: 640, height: 360 })).toEqual([0.5, 0.5])
  expect(shareOf({ x: 0, y: 450 }, frame, { width: 400, height: 300 })).toEqual([0, 0.5])
})
