import { expect, test } from 'vitest'

import { cameraHealth } from '../src/figures/health'

test.each([
  [true, 1, 'good'],
  [true, 0.99, 'good'],
  [true, 0.989, 'strained'],
  [true, 0.95, 'strained'],
  [true, 0.949, 'failing'],
  [true, 0, 'failing'],
  [true, null, 'waiting'],
  [false, 1, 'gone'],
] as const)('connected %s, on time %s: %s', (connected, on_time_share, health) => {
  expect(cameraHealth({ connected, on_time_share })).toBe(health)
})
