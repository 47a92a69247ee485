import { expect, test } from 'vitest'

import { labelled, partial, stageText } from '../src/live/stages'

test('attributes stand behind the label, nothing twice', () => {
  expect(labelled({ label: 'car' })).toBe('car')
  const vehicle = { variant: 'vehicle-64', attributes: { type: { label: 'car', score: 0.98 }, colour: { label: 'red', score: 0.7 } } }
  expect(labelled({ label: 'car', stages: { vehicle } })).toBe('car · red')
  expect(labelled({ label: 'car', stages: { kind: { variant: 'kinds-32', label: 'van', score: 0.5 } } })).toBe('car · van')
})

test('what a detector finds on an object is no label of it', () => {
  const plate = { variant: 'plates-96', detections: [{ label: 'plate', score: 0.9, box: [0, 0, 1, 1] as const }] }
  expect(labelled({ label: 'car', stages: { plate } })).toBe('car')
})

test('a partial answer says what it lacks', () => {
  expect(partial(undefined)).toBe('')
  expect(partial([])).toBe('')
  expect(partial(['vehicle', 'plate'])).toBe(' · without vehicle, plate')
})

test('a stage says its family where that is called otherwise, and what it comes after', () => {
  expect(stageText({ name: 'street', family: 'street', after: [] })).toBe('street')
  expect(stageText({ name: 'look', family: 'vehicle', after: ['street', 'yard'] })).toBe('look: vehicle, after street and yard')
})
