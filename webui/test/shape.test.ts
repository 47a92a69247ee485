import { describe, expect, test } from 'vitest'

import { mismatch, type Shape } from '../src/api/shape'

const RESERVED: Shape = ['object', { name: 'string', 'note?': 'string', sizes: ['array', ['tuple', 'number', 'number']], left: ['any', ['object', { why: 'string' }], 'null'], counts: ['map', 'number'] }]
const GOOD = { name: 'a', sizes: [[1, 2]], left: null, counts: { queue: 3 }, more: true }

describe('a value', () => {
  test('fits its description, and may have more fields', () => {
    expect(mismatch(GOOD, RESERVED)).toBeNull()
    expect(mismatch({ ...GOOD, note: 'x', left: { why: 'y' } }, RESERVED)).toBeNull()
    expect(mismatch({}, 'unknown')).toBeNull()
  })

  test.each([
    [null, 'it must be an object'],
    [[], 'it must be an object'],
    [{ ...GOOD, name: 1 }, 'name must be a string'],
    [{ ...GOOD, name: undefined }, 'name must be a string'],
    [{ ...GOOD, note: 1 }, 'note must be a string'],
    [{ ...GOOD, sizes: {} }, 'sizes must be a list'],
    [{ ...GOOD, sizes: [[1, 2], [3]] }, 'sizes[1] must be a list of 2'],
    [{ ...GOOD, sizes: [[1, '2']] }, 'sizes[0][1] must be a number'],
    [{ ...GOOD, left: { why: 4 } }, 'left.why must be a string'],
    [{ ...GOOD, counts: { queue: null } }, 'counts.queue must be a number'],
  ])('%j does not: %s', (value, complaint) => {
    expect(mismatch(value, RESERVED)).toBe(complaint)
  })
})
