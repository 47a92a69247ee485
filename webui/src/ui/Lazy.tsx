// A page whose code is fetched when it is first opened: the overview need not wait for it.

import notices from './notices.module.css'

import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'

interface LazyProps<Props> {
  /** Fetches the component; the same function at each render. */
  load: () => Promise<ComponentType<Props>>
  props: Props
  /** Called once the component is on the page. */
  onShown?: () => void
}

type Loaded<Props> = { by: LazyProps<Props>['load']; component: ComponentType<Props> | null }

export function Lazy<Props extends object>({ load, props, onShown }: LazyProps<Props>) {
  const [last, setLast] = useState<Loaded<Props> | null>(null)
  // What was loaded for another page is not shown with this one's properties.
  const loaded = last?.by === load ? last : null
  useEffect(() => {
    let isCurrent = true
    load().then(
      (component) => isCurrent && setLast({ by: load, component }),
      () => isCurrent && setLast({ by: load, component: null }),
    )
    return () => {
      isCurrent = false
    }
  }, [load])
  useEffect(() => {
    if (loaded) onShown?.()
  }, [loaded, onShown])
  if (loaded === null) return <main class={notices.opening} aria-busy="true">Loading…</main>
  const { component: Component } = loaded
  if (Component === null) return <main class={notices.opening}>This page could not be loaded: the box may have been upgraded. Reload to go on.</main>
  return <Component {...props} />
}
