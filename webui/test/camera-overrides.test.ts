import { expect, test } from 'vitest'

import { around, type Option } from '../src/camera/Explanation'
import { fileName, KEPT, resultsText, withResult, type Result } from '../src/camera/results'
import type { LiveFrameHeader } from '../src/api/types'
import { inWords } from '../src/api/api'
import { before, FIELDS, fieldOf, patchOf, standing, textOf, typedSince, type CameraDocument, type Overrides } from '../src/camera/cameraOverrides'

const SET: Overrides = {
  slo_ms: 200, rate_hz: null, app: null, min_accuracy: 0.3, site: null, pipeline: null, family: null, tracking: null, zones: null, lines: null,
}

test('only what differs from what is set is sent', () => {
  expect(patchOf({}, SET)).toEqual({})
  expect(patchOf({ slo_ms: '200', rate_hz: '' }, SET)).toEqual({})
  expect(patchOf({ slo_ms: ' 250 ', rate_hz: '2,5', app: 'door' }, SET)).toEqual({ slo_ms: 250, rate_hz: 2.5, app: 'door' })
})

test('undoing changes back what was sent, and nothing else', () => {
  const zones = [{ name: 'yard', points: [[0, 0], [1, 0], [1, 1]] as [number, number][], classes: [], min_dwell_s: 0 }]
  expect(before({ rate_hz: 3, slo_ms: null }, { ...SET, zones })).toEqual({ rate_hz: null, slo_ms: 200 })
})

test('what holds without a setting says where it comes from', () => {
  const known = {
    last_seen_ms: 1,
    requested: { slo_ms: 300, rate_hz: 10, min_accuracy: 0, app: 'default', site: null, pipeline: 'traffic' },
    origins: { slo_ms: 'camera', rate_hz: 'unknown', min_accuracy: 'default', app: 'default', site: 'default', pipeline: 'configuration', family: 'default' },
  } as unknown as CameraDocument
  expect(standing(known, 'slo_ms')).toBe('300, as the camera asks')
  expect(standing(known, 'rate_hz')).toBe('10, as at its last connection')
  expect(standing(known, 'min_accuracy')).toBe('0, the default')
  expect(standing(known, 'site')).toBe('none, the default')
  expect(standing(known, 'pipeline')).toBe('traffic, from the configuration')
  expect(standing({ ...known, last_seen_ms: null }, 'rate_hz')).toBe('not known before it connects')
})

test('an emptied field goes back to what holds without it', () => {
  expect(patchOf({ slo_ms: '', min_accuracy: ' ' }, SET)).toEqual({ slo_ms: null, min_accuracy: null })
  expect(textOf(null)).toBe('')
  expect(textOf(0)).toBe('0')
})

test('what is no number goes as it is, for the box to refuse', () => {
  expect(patchOf({ slo_ms: 'soon', rate_hz: '1e999' }, SET)).toEqual({ slo_ms: 'soon', rate_hz: '1e999' })
  expect(patchOf({ app: '7' }, SET)).toEqual({ app: '7' })
})

test('a refusal is shown at the field that it speaks of', () => {
  expect(fieldOf('settings.slo_ms must be a number from 1 to 60000')).toBe('slo_ms')
  expect(fieldOf('settings.min_accuracy must be a number from 0 to 1')).toBe('min_accuracy')
  expect(fieldOf('settings.family: faces is given features of street, not pictures: name a pipeline that has it')).toBe('family')
  expect(fieldOf('settings.family cannot be set beside a pipeline: take one off')).toBe('family')
  expect(fieldOf('settings.zones[0].classes: no model family finds truck')).toBeNull()
  expect(fieldOf('The box does not answer.')).toBeNull()
  expect(fieldOf('settings.pipeline: there is none', FIELDS.filter(({ field }) => field !== 'pipeline')), 'it is not drawn').toBeNull()
})

test('a refusal is said in the words of the form', () => {
  const names = { rate_hz: 'Frames per second', url: 'Address' }
  const said = 'source.url: is needed; source.rate_hz must be a number from 0.1 to 60, not "a.b c"; source.more must be a text'
  expect(inWords(said, names)).toBe('Address: is needed; Frames per second must be a number from 0.1 to 60, not "a.b c"; source.more must be a text')
})

const HEADER: LiveFrameHeader = { camera: 'gate-2', frame: 1, width_px: 640, height_px: 360, variant: 'street-256', outcome: 'on_time', total_ms: 33, detections: [] }

test('the newest results are kept, the newest first', () => {
  let results: Result[] = []
  for (let frame = 0; frame < KEPT + 7; frame++) results = withResult(results, { ...HEADER, frame }, 1000 + frame)
  expect(results.map(({ frame }) => frame)).toEqual(Array.from({ length: KEPT }, (_, n) => KEPT + 6 - n))
  const told = JSON.parse(resultsText('gate-2', results)) as { camera: string; results: Result[] }
  expect(told.camera).toBe('gate-2')
  expect(told.results[0]).toEqual({ received_ms: 1000 + KEPT + 6, ...HEADER, frame: KEPT + 6 })
})

test('a file is named after camera and moment, whatever the camera is called', () => {
  expect(fileName('a/b ü', Date.UTC(2026, 10, 21, 10, 28, 5, 123), '.jpg')).toBe('a_b__-2026-11-21T102805Z.jpg')
})

test('the sizes around the chosen one are shown, always as many', () => {
  const options = (chosen: number) =>
    Array.from({ length: 9 }, (_, n) => ({ variant: String(n), verdict: n === chosen ? 'chosen' : 'alone' }) as Option)
  const names = (chosen: number) => around(options(chosen), 4).map(({ variant }) => variant).join('')
  expect(names(0)).toBe('0123')
  expect(names(4)).toBe('3456')
  expect(names(8)).toBe('5678')
  expect(around(options(1).slice(0, 2), 4)).toHaveLength(2)
})

test('what was typed while a draft was being saved stays', () => {
  expect(typedSince({ rate_hz: '5' }, { rate_hz: '5' })).toEqual({})
  expect(typedSince({ rate_hz: '5' }, { rate_hz: '50', app: 'gate' })).toEqual({ rate_hz: '50', app: 'gate' })
  expect(typedSince({ rate_hz: '5', app: 'gate' }, { app: 'gate' })).toEqual({})
})
