// Which colour is which variant, of those that ran or waited in the last minute.

import styles from './Legend.module.css'

import { useEffect, useRef, useState } from 'preact/hooks'

import { variantColour } from '../../timeline/colours'
import { isDark } from '../../timeline/paint'
import type { TimelineStore } from '../../timeline/store'
import { THEME_CHANGED } from '../../theme'
import type { Box } from '../../types'

/** `box` changes twice a second and brings this up to date. */
export function Legend({ store }: { store: TimelineStore; box: Box }) {
  const place = useRef<HTMLUListElement>(null)
  const dark = useDark(place.current)
  const used = new Set<string>()
  for (const lane of store.lanes.values()) for (const { variant } of lane) used.add(variant)
  return (
    <ul class={`scroll-x ${styles.legend}`} ref={place} aria-label="Variants" tabIndex={0}>
      {store.variants
        .filter((variant) => used.has(variant))
        .map((variant) => (
          <li key={variant}>
            <span class="swatch" style={{ background: variantColour(variant, store.variants, dark).fill }} />
            {variant}
          </li>
        ))}
    </ul>
  )
}

function useDark(element: Element | null): boolean {
  const [, draw] = useState(0)
  useEffect(() => {
    const changed = () => draw((times) => times + 1)
    const scheme = window.matchMedia('(prefers-color-scheme: dark)')
    scheme.addEventListener('change', changed)
    window.addEventListener(THEME_CHANGED, changed)
    return () => {
      scheme.removeEventListener('change', changed)
      window.removeEventListener(THEME_CHANGED, changed)
    }
  }, [])
  return element !== null && isDark(element)
}
