import { expect, test } from 'vitest'

import { contain, scaleBox } from '../src/live/geometry'

test('a picture fills its frame as far as its shape allows, centred', () => {
  expect(contain({ width: 1280, height: 720 }, { width: 640, height: 360 })).toEqual({ x: 0, y: 0, width: 640, height: 360 })
  expect(contain({ width: 100, height: 200 }, { width: 400, height: 200 })).toEqual({ x: 150, y: 0, width: 100, height: 200 })
  expect(contain({ width: 400, height: 100 }, { width: 200, height: 200 })).toEqual({ x: 0, y: 75, width: 200, height: 50 })
})

const SOURCE = { width: 1280, height: 720 }
const PICTURE = { x: 10, y: 20, width: 640, height: 360 }

test("a box goes from the camera's pixels to the canvas's", () => {
  expect(scaleBox([612, 300, 702, 358], SOURCE, PICTURE)).toEqual({ x: 316, y: 170, width: 45, height: 29 })
})

test('a box is cut at the edge of the picture', () => {
  expect(scaleBox([-50, -10, 2000, 900], SOURCE, PICTURE)).toEqual({ x: 10, y: 20, width: 640, height: 360 })
  expect(scaleBox([1300, 100, 1400, 200], SOURCE, PICTURE).width).toBe(0)
})
