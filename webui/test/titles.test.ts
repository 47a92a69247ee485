import { expect, test } from 'vitest'

import { titleOf } from '../src/app/titles'

test('a title names the page first, then the box', () => {
  expect(titleOf({ page: 'overview' }, 'yard')).toBe('Cameras · yard')
  expect(titleOf({ page: 'add' }, 'yard')).toBe('Add a camera · yard')
  expect(titleOf({ page: 'camera', camera: 'gate-2' }, 'yard')).toBe('Camera gate-2 · yard')
})
