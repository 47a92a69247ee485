import { expect, test } from 'vitest'

import { foundWithin, labelled, partial, stageText } from '../src/live/stages'

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

test('what later detectors found is listed, through all stages', () => {
  expect(foundWithin(undefined)).toEqual([])
  expect(foundWithin({ vehicle: { variant: 'vehicles-64', attributes: {} } })).toEqual([])
  const letter = { label: 'letter', score: 0.7, box: [1, 1, 2, 2] as const }
  const plate = { label: 'plate', score: 0.9, box: [0, 0, 4, 4] as const, stages: { letters: { variant: 'letters-32', detections: [letter] } } }
  const lamp = { label: 'lamp', score: 0.8, box: [5, 0, 6, 1] as const }
  const stages = { parts: { variant: 'parts-96', detections: [plate, lamp] } }
  expect(foundWithin(stages).map(({ label }) => label)).toEqual(['plate', 'letter', 'lamp'])
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
