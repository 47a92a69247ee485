import { expect, test } from 'vitest'

import { crossingsInWords, inWords, svgPoints } from '../src/live/zones'

test('points are placed in the pixels of the picture', () => {
  expect(svgPoints([[0, 0], [0.5, 1], [1, 0.25]], 640, 360)).toBe('0,0 320,360 640,90')
})

test('counts are said in words, and none as 0', () => {
  expect(inWords({ car: 2, person: 1, bus: 0 })).toBe('2 car, 1 person')
  expect(inWords({})).toBe('0')
})

test('crossings are summed over the classes', () => {
  expect(crossingsInWords({ in: { car: 2, bus: 1 }, out: {} })).toBe('3 in, 0 out')
})
