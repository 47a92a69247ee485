// Batches for tests of the timeline.

import type { Batch, BatchRequest, TimelineUpdate } from '../src/scheduler/timeline'

interface Options {
  variant?: string
  outcomes?: ReadonlyArray<BatchRequest['outcome']>
  executor?: string
  slack_ms?: number
}

/** A batch that ran from one instant to another; `end_ms` null: it still does. */
export function batch(number: number, start_ms: number, end_ms: number | null, options: Options = {}): Batch {
  const { variant = 'street-256', executor = 'cpu/0', slack_ms = 100 } = options
  const { outcomes = [end_ms === null ? null : ('on_time' as const)] } = options
  return {
    batch: number,
    kind: 'batch',
    executor,
    variant,
    size: outcomes.length,
    padded_size: outcomes.length,
    threads: null,
    ordered_ms: start_ms,
    started_ms: end_ms === null ? null : start_ms,
    ended_ms: end_ms,
    answered_ms: end_ms,
    expected_ms: 8,
    requests: outcomes.map((outcome, at) => ({
      request: number * 10 + at,
      camera: `gate-${at + 1}`,
      frame: null,
      stage: null,
      captured_ms: start_ms - 30,
      arrived_ms: start_ms - 5,
      deadline_ms: (end_ms ?? start_ms) + slack_ms + 10 * at,
      outcome,
    })),
  }
}

export function update(now_ms: number, parts: Partial<TimelineUpdate> = {}): TimelineUpdate {
  return {
    type: 'timeline',
    begins: false,
    now_ms,
    unix_ms: now_ms + 5_000,
    failure: '',
    executors: ['cpu/0'],
    variants: ['street-128', 'street-256'],
    batches: [],
    running: [],
    drops: [],
    changes: [],
    plans: [],
    queues: [],
    ...parts,
  }
}
