// Keeps one part of the page that cannot be drawn from taking the others with it.

import notices from './notices.module.css'

import type { ComponentChildren } from 'preact'
import { useEffect, useErrorBoundary } from 'preact/hooks'

import { messageOf } from '../api/api'

const TRY_AGAIN_MS = 2_000

export function ErrorBoundary({ what, children }: { what: string; children: ComponentChildren }) {
  const [error, reset] = useErrorBoundary((thrown) => console.error(`${what} cannot be shown`, thrown))
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new `reset` at each drawing must not begin the wait again
  useEffect(() => {
    if (!error) return
    const timer = window.setTimeout(reset, TRY_AGAIN_MS)
    return () => window.clearTimeout(timer)
  }, [error])
  if (!error) return <>{children}</>
  return (
    <p class={`card ${notices.broken}`} role="alert">
      {what} cannot be shown: {messageOf(error)}
    </p>
  )
}
