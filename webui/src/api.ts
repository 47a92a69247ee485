// Questions to the box's API over HTTP; what it refuses becomes an error a person can read.

import { objectOf, valueOf } from './json'

/** What the box refused, or that it did not answer; the message says why. */
export class ApiError extends Error {
  constructor(
    message: string,
    /** The HTTP status; 0: no answer. */
    readonly status: number,
  ) {
    super(message)
  }
}

interface Options {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Sent as JSON. */
  body?: unknown
  signal?: AbortSignal
}

/** Ask a route such as `v1/cameras`, relative to the page; throws ApiError. */
export async function ask<Answer>(route: string, { method = 'GET', body, signal }: Options = {}): Promise<Answer> {
  const init: RequestInit = { method, cache: 'no-store' }
  if (signal) init.signal = signal
  if (body !== undefined) {
    init.headers = { 'Content-Type': 'application/json' }
    init.body = JSON.stringify(body)
  }
  let response: Response
  try {
    response = await fetch(route, init)
  } catch (error) {
    if (signal?.aborted) throw error
    throw new ApiError('The box does not answer.', 0)
  }
  const text = await response.text()
  if (!response.ok) throw new ApiError(problemOf(text) ?? `The box answered ${response.status}.`, response.status)
  return valueOf(text) as Answer
}

/** What a problem document (RFC 9457) says went wrong. */
export function problemOf(text: string): string | null {
  const { detail, title } = objectOf(text) ?? {}
  if (typeof detail === 'string') return detail
  return typeof title === 'string' ? title : null
}
