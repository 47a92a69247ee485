// What the box sends of its timeline, as docs/reference/http-api.md says. Instants are milliseconds of the box's own clock.

import type { Batch, BatchRequest, DroppedRequest, PlanChange, AdvisedSize } from '../api/api-types'
import { mismatch, type Shape } from '../api/shape'

export type { Batch, BatchRequest, DroppedRequest, PlanChange, AdvisedSize }

export interface PlanRun {
  asked_ms: number
  answered_ms: number
  utilisation: number
}

/** The longest each variant's queue was, from an instant to that of the next entry. */
export type QueueEntry = readonly [at_ms: number, longest: Readonly<Record<string, number>>]

export interface DecisionTimes {
  count: number
  p50: number
  p99: number
  max: number
}

/** What is new since the last one; `begins` in the first, which goes back a minute. */
export interface TimelineUpdate {
  type: 'timeline'
  begins: boolean
  now_ms: number
  unix_ms: number
  failure: string
  executors: readonly string[]
  variants: readonly string[]
  batches: readonly Batch[]
  running: readonly Batch[]
  drops: readonly DroppedRequest[]
  changes: readonly PlanChange[]
  plans: readonly PlanRun[]
  queues: readonly QueueEntry[]
  decision_us?: DecisionTimes | null
}

const UPDATE: Shape = ['object', {
  type: ['const', 'timeline'], begins: 'boolean', now_ms: 'number', unix_ms: 'number', failure: 'string',
  executors: ['array', 'string'], variants: ['array', 'string'],
  batches: ['array', ['named', 'Batch']], running: ['array', ['named', 'Batch']],
  drops: ['array', ['named', 'DroppedRequest']], changes: ['array', ['named', 'PlanChange']],
  plans: ['array', ['object', { asked_ms: 'number', answered_ms: 'number', utilisation: 'number' }]],
  queues: ['array', ['tuple', 'number', ['map', 'number']]],
  'decision_us?': ['any', ['object', { count: 'number', p50: 'number', p99: 'number', max: 'number' }], 'null'],
}]

/** Say how a document differs from an update of the timeline; null: it does not. */
export function timelineMismatch(document: unknown): string | null {
  return mismatch(document, UPDATE)
}
