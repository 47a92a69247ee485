// Counting what was found on a single picture.

import { expect, test } from 'vitest'

import { countsOf } from '../src/models/pictureAnswer'

test('the most frequent label comes first, and none is lost', () => {
  const found = ['car', 'person', 'bus', 'person'].map((label) => ({ label, score: 0.9, box: [0, 0, 1, 1] as const }))
  expect(countsOf(found)).toEqual([{ label: 'person', count: 2 }, { label: 'bus', count: 1 }, { label: 'car', count: 1 }])
  expect(countsOf([])).toEqual([])
})
