// An answer of the API that is asked for again and again, and never while nobody looks.

import { useCallback, useEffect, useRef, useState } from 'preact/hooks'

import { type Address, addressOf, ApiError, type Operation, request } from './api'
import type { Answers } from './api-types'

/** After a failure, however seldom it is asked else. */
const RETRY_MS = 3_000

export interface Polled<Answer> {
  /** The last one; it stays while a later one is waited for, or fails. */
  answer: Answer | null
  /** Why the last question failed; null: it did not. */
  error: ApiError | null
  /** Take this for the last answer: it came another way, and is newer than any that is on its way. */
  put: (answer: Answer) => void
}

/** Ask at once, then every so often, and whenever `version` is another one; no address: ask nothing. */
export function usePolled<Name extends Operation>(operation: Name, address: Address | null, period_ms: number, version = ''): Polled<Answers[Name]> {
  type Answer = Answers[Name]
  const route = address && addressOf(operation, address)
  const [answer, setAnswer] = useState<Answer | null>(null)
  const [error, setError] = useState<ApiError | null>(null)
  const latest = useRef<(answer: Answer) => void>(() => {})
  // biome-ignore lint/correctness/useExhaustiveDependencies: `route` says all of the operation and its address
  useEffect(() => {
    if (route === null || address === null) return
    let asking = new AbortController()
    let timer: number | undefined
    const go = async () => {
      window.clearTimeout(timer)
      asking.abort()
      const mine = new AbortController()
      asking = mine
      if (document.hidden) return
      let next_ms = period_ms
      try {
        const received = await request(operation, { ...address, signal: mine.signal })
        if (mine.signal.aborted) return
        setAnswer(received)
        setError(null)
      } catch (failure) {
        if (mine.signal.aborted) return
        setError(failure instanceof ApiError ? failure : new ApiError(String(failure), 0))
        next_ms = Math.min(period_ms, RETRY_MS)
      }
      timer = window.setTimeout(() => void go(), next_ms)
    }
    const look = () => void go()
    latest.current = (newer) => {
      setAnswer(newer)
      look()
    }
    document.addEventListener('visibilitychange', look)
    look()
    return () => {
      document.removeEventListener('visibilitychange', look)
      window.clearTimeout(timer)
      asking.abort()
    }
  }, [route, period_ms, version])
  return { answer, error, put: useCallback((newer: Answer) => latest.current?.(newer), []) }
}
