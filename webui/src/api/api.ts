// Requests to the box's API over HTTP; what it refuses becomes an error a person can read.

import { ANSWERS } from './api-shapes'
import type { Answers } from './api-types'
import { objectOf, parsed } from './json'
import { mismatch } from './shape'

/** A method and a path, as the box's description has them: "GET /v1/cameras/{id}". */
export type Operation = keyof Answers

/** What the box refused, or that it did not answer; the message says why. */
export class ApiError extends Error {
  constructor(
    message: string,
    /** The HTTP status; 0: no answer, or one that is not understood. */
    readonly status: number,
  ) {
    super(message)
  }
}

/** What fills a path's braces, and what follows it as a query. */
export interface Address {
  path?: Readonly<Record<string, string>>
  query?: Readonly<Record<string, string | number>>
}

interface Options extends Address {
  /** Sent as JSON; a file as it is. */
  body?: unknown
  signal?: AbortSignal
}

/** Ask the box; an answer that is not as described is refused. Throws ApiError. */
export async function request<Name extends Operation>(operation: Name, { body, signal, ...address }: Options = {}): Promise<Answers[Name]> {
  const init: RequestInit = { method: operation.split(' ')[0] ?? 'GET', cache: 'no-store' }
  if (signal) init.signal = signal
  if (body !== undefined) {
    const file = body instanceof Blob
    init.headers = { 'Content-Type': file ? body.type : 'application/json' }
    init.body = file ? body : JSON.stringify(body)
  }
  let response: Response
  let text: string
  try {
    response = await fetch(addressOf(operation, address), init)
    text = await response.text()
  } catch (error) {
    if (signal?.aborted) throw error
    throw new ApiError('The box does not answer.', 0)
  }
  if (!response.ok) throw new ApiError(problemOf(text) ?? `The box answered ${response.status}.`, response.status)
  const answer = parsed(text)
  const wrong = mismatch(answer, ANSWERS[operation] ?? 'unknown')
  if (wrong !== null) throw new ApiError(`The box's answer is not understood: ${wrong}. Reload the page if the box was upgraded.`, 0)
  return answer as Answers[Name]
}

/** Where an operation is, relative to the page, which may lie under any path of a proxy. */
export function addressOf(operation: Operation, { path = {}, query }: Address = {}): string {
  const filled = operation.replace(/^\w+ \//, '').replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(path[name] ?? ''))
  const pairs = Object.entries(query ?? {}).map(([name, value]) => [name, String(value)])
  return pairs.length > 0 ? `${filled}?${new URLSearchParams(pairs)}` : filled
}

/** The words for whatever went wrong. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** A refusal of the box in a form's own words: it names a field by its key, as in `source.rate_hz must be...`. */
export function inWords(message: string, names: Readonly<Record<string, string>>): string {
  return message.replace(/\b[a-z_]+\.([a-z_]+)(?=:? )/g, (key, field: string) => names[field] ?? key)
}

/** What a problem document (RFC 9457) says went wrong. */
export function problemOf(text: string): string | null {
  const { detail, title } = objectOf(text) ?? {}
  if (typeof detail === 'string') return detail
  return typeof title === 'string' ? title : null
}
