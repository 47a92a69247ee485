import { expect, test } from 'vitest'

import { titleOf } from '../src/titles'

test('a title names the page first, then the box', () => {
  expect(titleOf({ place: 'overview' }, 'yard')).toBe('Cameras · yard')
  expect(titleOf({ place: 'add' }, 'yard')).toBe('Add a camera · yard')
  expect(titleOf({ place: 'camera', camera: 'gate-2' }, 'yard')).toBe('gate-2 · yard')
})
