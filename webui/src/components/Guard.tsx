// Keeps one part of the page that cannot be drawn from taking the others with it.

import notices from './notices.module.css'

import type { ComponentChildren } from 'preact'
import { useEffect, useErrorBoundary } from 'preact/hooks'

const TRY_AGAIN_MS = 2_000

export function Guard({ what, children }: { what: string; children: ComponentChildren }) {
  const [error, reset] = useErrorBoundary()
  useEffect(() => {
    if (!error) return
    const timer = window.setTimeout(reset, TRY_AGAIN_MS)
    return () => window.clearTimeout(timer)
  }, [error])
  if (!error) return <>{children}</>
  return (
    <p class={`card ${notices.broken}`} role="alert">
      {what} cannot be shown: {error instanceof Error ? error.message : String(error)}
    </p>
  )
}
