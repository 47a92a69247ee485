import { expect, test } from 'vitest'

import { type FleetBox, inOrder, loadText, nameOf, pageOf, standingOf, sumsOf } from '../src/boxes/boxes'

const HALL: FleetBox = {
  box: 'hall at http://hall:8787', address: 'http://hall:8787', fingerprint: null, load: 0.4, services: {}, cameras: 3, cameras_max: 64,
  draining: false, ready: true, version: '1.0.0',
}

test('a name stands without the address that tells boxes of one name apart', () => {
  expect(nameOf(HALL)).toBe('hall')
  expect(nameOf({ ...HALL, box: 'hall' })).toBe('hall')
})

test('only an address that a browser opens is a link', () => {
  expect(pageOf(HALL)).toBe('http://hall:8787/')
  expect(pageOf({ address: 'https://[::1]:8787' })).toBe('https://[::1]:8787/')
  expect(pageOf({ address: 'javascript:alert(1)//http://' })).toBeNull()
})

test('a box serves, is about to stop, or has not begun', () => {
  expect(standingOf(HALL)).toBe('serving')
  expect(standingOf({ ready: true, draining: true })).toBe('stopping')
  expect(standingOf({ ready: false, draining: true })).toBe('not ready')
})

test('a load is told in words', () => {
  const text = (load: number, ready = true) => loadText({ load, ready }).replace('\u202f', ' ')
  expect([text(0.42), text(1), text(1.34), text(0, false)]).toEqual(['42 % loaded', '100 % loaded', '134 % loaded: too much for all', 'load not known yet'])
})

test('boxes stand in the order in which people count', () => {
  const boxes = ['box-10', 'box-2', 'box-1'].map((box) => ({ ...HALL, box }))
  expect(inOrder(boxes).map(({ box }) => box)).toEqual(['box-1', 'box-2', 'box-10'])
})

test('cameras are summed over all boxes, loads over those that serve', () => {
  const stopping = { ...HALL, cameras: 2, cameras_max: 32, draining: true, load: 0.9 }
  const busy = { ...HALL, load: 1.2, version: '0.9.0' }
  const { load_mean, ...sums } = sumsOf([HALL, stopping, busy])
  expect(sums).toEqual({ cameras: 8, cameras_max: 160, load_max: 1.2, versions: ['0.9.0', '1.0.0'] })
  expect(load_mean).toBeCloseTo(0.8)
  expect(sumsOf([stopping])).toMatchObject({ load_mean: null, load_max: null })
})
