import { expect, test } from 'vitest'

import { frozenFor_s, inOrder, missText, statusText, unseenSources, verdictOf, type Health } from '../src/figures/health'
import type { BoxState, Camera } from '../src/api/types'
import { documentedState } from './documented'

const STATE = documentedState()

function camera(id: string, grade: Health, more: Partial<Camera> = {}): Camera {
  return { ...(STATE.cameras[0] as Camera), id, grade, connected: grade !== 'gone', ...more }
}

function verdict(cameras: Camera[], box: Partial<BoxState['box']> = {}) {
  return verdictOf({ box: { ...STATE.box, ...box }, cameras, sources: [] })
}

test('the verdict is that of the worst camera, and leads to it', () => {
  const found = verdict([camera('a', 'good'), camera('b', 'failing', { on_time_share: 0.82 }), camera('c', 'strained'), camera('a2', 'failing', { on_time_share: 0.9 })])
  expect(found).toEqual({ health: 'failing', text: 'b: 82\u202f% on time, and 2 more cameras', camera: 'b' })
  expect(verdict([camera('a', 'good'), camera('b', 'good')])).toEqual({ health: 'good', text: 'All 2 cameras are well', camera: null })
  expect(verdict([])).toEqual({ health: 'good', text: 'Ready', camera: null })
})

test('a box that is not ready, or has lost an executor, is not well whatever its cameras are', () => {
  expect(verdict([camera('a', 'good')], { ready: false, ready_reason: 'warming up' })).toMatchObject({ health: 'strained', text: 'Not ready: warming up' })
  const executors = STATE.box.executors.map((each) => ({ ...each, state: 'down' as const }))
  expect(verdict([camera('a', 'good')], { executors } as unknown as Partial<BoxState['box']>).health).toBe('failing')
})

test('an executor elsewhere that the box started without is not there, and was not lost', () => {
  const last_error = { at_ms: 0, text: 'http://box:8787 takes no connections' }
  const absent = STATE.box.executors.map((each) => ({ ...each, id: 'box:8787/0', state: 'waiting' as const, provider: '', last_error }))
  expect(verdict([camera('a', 'good')], { executors: absent })).toEqual({ health: 'failing', text: 'box:8787/0 is not there: http://box:8787 takes no connections', camera: null })
})

test('a plan that no longer follows its cameras is named', () => {
  const planner = { ...STATE.box.planner, age_s: 12.4, overdue: true }
  const text = 'The plan is 12\u202fs old: sizes no longer follow the links'
  expect(verdict([camera('a', 'good')], { planner })).toEqual({ health: 'strained', text, camera: null })
  expect(verdict([camera('a', 'good')], { planner: { ...planner, overdue: false } }).health).toBe('good')
})

test('a camera that is reduced by plan is named without alarm', () => {
  const reduced = camera('a', 'reduced', { rate_hz: 5, advice: { ...(STATE.cameras[0] as Camera).advice, rate_hz: 2 } as Camera['advice'] })
  expect(statusText(reduced)).toBe('2 of 5\u202fframes/s, as planned')
  expect(verdict([reduced, camera('b', 'good')])).toEqual({ health: 'reduced', text: 'a: 2 of 5\u202fframes/s, as planned', camera: 'a' })
})

test('of a camera with misses it is said what mostly became of them', () => {
  const dropped_in_window = { plan: 30, queue: 5, sender: 2 }
  expect(missText(camera('a', 'failing', { dropped_in_window }))).toMatch(/^Most misses: they waited too long behind other work/)
  expect(missText(camera('a', 'strained', { dropped_in_window: { plan: 30 } }))).toBe('Answers come too late')
  expect(missText(camera('a', 'good', { dropped_in_window }))).toBe(null)
  expect(missText(camera('a', 'strained', { late_in_window: 8, dropped_in_window: { sender: 1 } }))).toBe('Answers come too late')
  expect(missText(camera('a', 'strained', { late_in_window: 1, dropped_in_window: { sender: 2 } }))).toMatch(/^Most misses: not sent/)
})

test('troubled cameras come first, the rest by name, those that are gone apart', () => {
  const { shown, gone } = inOrder([camera('gate-10', 'good'), camera('gate-2', 'reduced'), camera('z', 'failing'), camera('b', 'gone'), camera('y', 'waiting')])
  expect(shown.map(({ id }) => id)).toEqual(['z', 'y', 'gate-2', 'gate-10'])
  expect(gone.map(({ id }) => id)).toEqual(['b'])
})

test('a source without pictures is the worst there is, and says why', () => {
  const trouble = 'source lost since 12:03: connection refused'
  const lost = camera('b', 'lost', { trouble, connected: false })
  expect(statusText(lost)).toBe(trouble)
  expect(verdict([camera('a', 'failing', { on_time_share: 0.1 }), lost])).toEqual({ health: 'lost', text: `b: ${trouble}, and 1 more camera`, camera: 'b' })
  expect(inOrder([camera('a', 'failing'), lost]).shown.map(({ id }) => id)).toEqual(['b', 'a'])
})

test('a source that never gave a picture is in the verdict and in the overview, too', () => {
  const source = STATE.sources[0] as (typeof STATE.sources)[number]
  const live = { ...source, camera: 'a', state: 'live' as const, remedies: [] }
  const sources = [{ ...source, camera: 'yard-10' }, { ...source, camera: 'yard-9' }, live]
  const found = { ...STATE, cameras: [camera('a', 'good')], sources }
  expect(unseenSources(found).map((each) => each.camera)).toEqual(['yard-9', 'yard-10'])
  expect(verdictOf(found)).toEqual({ health: 'lost', text: `yard-9: ${source.text}, and 1 more camera`, camera: 'yard-9' })
  const troubled = [camera('a', 'failing'), camera('b', 'strained'), camera('c', 'lost'), camera('d', 'reduced'), camera('e', 'gone')]
  expect(verdictOf({ ...found, cameras: troubled }).text).toBe(`yard-9: ${source.text}, and 4 more cameras`)
  expect(unseenSources({ ...found, cameras: [camera('yard-9', 'lost'), camera('yard-10', 'lost')] })).toEqual([])
})

test('the picture of a camera that fell silent is frozen', () => {
  expect(frozenFor_s(camera('a', 'waiting', { last_frame_s: 12.3 }))).toBe(12)
  expect(frozenFor_s(camera('a', 'waiting', { last_frame_s: null }))).toBe(null)
  expect(frozenFor_s(camera('a', 'good', { last_frame_s: 2 }))).toBe(null)
  expect(frozenFor_s(camera('a', 'gone', { last_frame_s: 12 }))).toBe(null)
})
