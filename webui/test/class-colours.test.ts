import { expect, test } from 'vitest'

import { classColour, countsByClass } from '../src/live/classColours'

test('a class has one colour, whatever the model; tests/media/test_class_colours.py expects the same', () => {
  expect(['person', 'car', 'motorbike', 'Motorcycle', 'traffic light', 'helmet'].map(classColour)).toEqual(COLOURS)
})

test('what was found is counted by class, the most frequent first', () => {
  const found = ['car', 'person', 'person'].map((label) => ({ label }))
  expect(countsByClass(found)).toEqual([{ label: 'person', amount: 2 }, { label: 'car', amount: 1 }])
})

const COLOURS = ['#ffb43a', '#4cc9f0', '#b9a0ff', '#b9a0ff', '#8fb8ff', '#f59bee']
