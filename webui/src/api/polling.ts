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
  /** Take this for the last answer: it came another way, and is newer than any that is on its way. Does nothing when this route is not asked any more. */
  put: (answer: Answer) => void
}

/** Ask at once, then every so often, and whenever `version` is another one; no address: ask nothing. */
export function usePolled<Name extends Operation>(operation: Name, address: Address | null, period_ms: number, version = ''): Polled<Answers[Name]> {
  type Answer = Answers[Name]
  const route = address && addressOf(operation, address)
  const [answer, setAnswer] = useState<Answer | null>(null)
  const [error, setError] = useState<ApiError | null>(null)
  /** What takes an answer from elsewhere, as long as this route is asked. */
  const running = useRef<{ route: string; take: (answer: Answer) => void } | null>(null)
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
    const take = (newer: Answer) => {
      setAnswer(newer)
      look()
    }
    running.current = { route, take }
    document.addEventListener('visibilitychange', look)
    look()
    return () => {
      // A change may still be on its way, and would begin to ask anew.
      running.current = null
      document.removeEventListener('visibilitychange', look)
      window.clearTimeout(timer)
      asking.abort()
    }
  }, [route, period_ms, version])
  const put = useCallback(
    (newer: Answer) => {
      if (running.current?.route === route) running.current.take(newer)
    },
    [route],
  )
  return { answer, error, put }
}
