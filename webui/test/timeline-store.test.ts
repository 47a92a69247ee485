// News add up to the last minute, and what is paused stays as it was.

import { describe, expect, test } from 'vitest'

import { endOf, leastSlack, startOf, TimelineStore, verdictOf } from '../src/scheduler/timelineStore'
import { TimelineFeed } from '../src/scheduler/timelineFeed'
import { documentedUpdate } from './documented'
import type { BatchRequest } from '../src/scheduler/timeline'
import { batch, update } from './timeline-scene'

describe('the documented update', () => {
  const documented = documentedUpdate()

  test('are understood', () => {
    const store = new TimelineStore()
    store.take(documented)
    const shown = store.find(77)
    expect(shown && verdictOf(shown)).toBe('on_time')
    expect(shown && leastSlack(shown, shown.answered_ms ?? 0)).toBeCloseTo(110.9, 3)
    expect(store.running[0] && [startOf(store.running[0]), endOf(store.running[0])]).toEqual([81203488.101, null])
    expect(store.decision_us?.p99).toBe(60)
    expect(store.changes[0]?.after.variant).toBe('street-256')
    expect(store.drops[0]?.reason).toBe('queue')
    expect(store.queues[0]).toEqual([81203300, { 'street-256': 3 }])
  })
})

describe('the store', () => {
  test('keeps batches by executor, and replaces what runs', () => {
    const store = new TimelineStore()
    store.take(update(100, { batches: [batch(1, 10, 20)], running: [batch(2, 30, null)] }))
    store.take(update(200, { batches: [batch(2, 30, 40), batch(3, 10, 90, { executor: 'cpu/1' })] }))
    expect(store.lanes.get('cpu/0')?.map((each) => each.batch)).toEqual([1, 2])
    expect(store.inOrder().map((each) => each.batch)).toEqual([1, 3, 2])
    expect(store.running).toEqual([])
    expect(store.unixOffset_ms).toBe(5_000)
  })

  test('forgets what is older than a minute, though not at once', () => {
    const store = new TimelineStore()
    for (let at = 0; at < 1_000; at += 1) {
      store.take(update(at * 1_000, { batches: [batch(at, at * 1_000 - 10, at * 1_000)] }))
    }
    const kept = store.lanes.get('cpu/0')?.map((each) => each.batch) ?? []
    expect(kept.at(-1)).toBe(999)
    expect(kept.slice(-61)).toEqual(Array.from({ length: 61 }, (_, at) => 939 + at))
    expect(kept.length).toBeLessThan(61 + 70)
  })

  test('begins again with a box that has restarted', () => {
    const store = new TimelineStore()
    store.take(update(90_000, { batches: [batch(900, 89_000, 89_010)] }))
    store.take(update(50, { begins: true, batches: [batch(1, 10, 20)] }))
    expect(store.inOrder().map((each) => each.batch)).toEqual([1])
    expect(store.find(900)).toBeNull()
  })

  test('that is frozen hears nothing more', () => {
    const store = new TimelineStore()
    store.take(update(100, { batches: [batch(1, 10, 20)] }))
    const frozen = store.frozen()
    store.take(update(200, { batches: [batch(2, 110, 120)], queues: [[100, { a: 1 }]] }))
    store.take(update(5, { begins: true }))
    expect(frozen.inOrder().map((each) => each.batch)).toEqual([1])
    expect(frozen.queues).toEqual([])
    expect(frozen.now_ms).toBe(100)
  })
})

test('a batch is as good as its worst request', () => {
  const verdict = (...outcomes: Array<BatchRequest['outcome']>) => verdictOf(batch(1, 10, 20, { outcomes }))
  expect(verdict('on_time', 'on_time')).toBe('on_time')
  expect(verdict('on_time', 'late')).toBe('late')
  expect(verdict('late', 'departed')).toBe('failed')
  expect(verdictOf(batch(1, 10, null))).toBe('running')
  expect(verdictOf({ ...batch(1, 10, 20, { outcomes: [null] }), kind: 'sample' })).toBe('sample')
})

test('update are asked for only while somebody shows them', () => {
  const asked: boolean[] = []
  const heard: number[] = []
  const feed = new TimelineFeed((wanted) => asked.push(wanted))
  feed.take(update(1))
  const end = feed.follow(({ now_ms }) => heard.push(now_ms))
  feed.take(update(2))
  // A page that opens before the last one is gone is not silenced by it.
  const endOther = feed.follow(({ now_ms }) => heard.push(-now_ms))
  end()
  feed.take(update(3))
  endOther()
  feed.take(update(4))
  expect(heard).toEqual([2, -3])
  expect(asked).toEqual([true, true, false])
})
