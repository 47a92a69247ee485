import { expect, test } from 'vitest'

import { linkColumns } from '../src/overview/series'

test('both histories share one time axis, and a size holds until the next', () => {
  expect(linkColumns([[-59, 1_800_000], [-1, 2_100_000]], [[-60, 320], [-12.5, 256]], 60)).toEqual({
    at_s: [-60, -59, -12.5, -1, 0],
    bandwidth_mbps: [null, 1.8, null, 2.1, null],
    size_px: [320, 320, 256, 256, 256],
  })
})

test('a size older than the window is the one in force at its start', () => {
  expect(linkColumns([], [[-300, 416]], 60)).toEqual({
    at_s: [-60, 0],
    bandwidth_mbps: [null, null],
    size_px: [416, 416],
  })
})

test('nothing known is an empty window, not an error', () => {
  expect(linkColumns([], [], 60)).toEqual({ at_s: [-60, 0], bandwidth_mbps: [null, null], size_px: [null, null] })
})
