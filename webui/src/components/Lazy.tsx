// A page whose code is fetched when it is first opened: the overview need not wait for it.

import notices from './notices.module.css'

import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'

interface LazyProps<Props> {
  /** Fetches the component; the same function at each render. */
  load: () => Promise<ComponentType<Props>>
  props: Props
}

export function Lazy<Props extends object>({ load, props }: LazyProps<Props>) {
  const [loaded, setLoaded] = useState<{ component: ComponentType<Props> } | 'failed' | null>(null)
  useEffect(() => {
    let gone = false
    setLoaded(null)
    load().then(
      (component) => !gone && setLoaded({ component }),
      () => !gone && setLoaded('failed'),
    )
    return () => {
      gone = true
    }
  }, [load])
  if (loaded === 'failed') return <p class={notices.opening}>This page could not be loaded: the box may have been upgraded. Reload to go on.</p>
  if (loaded === null) return <p class={notices.opening} aria-busy="true">Loading…</p>
  const { component: Component } = loaded
  return <Component {...props} />
}
