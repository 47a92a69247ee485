// Which colour is which variant, of those that ran or waited in the last minute.

import styles from './Legend.module.css'

import { useEffect, useRef, useState } from 'preact/hooks'

import { variantColour } from './colours'
import type { TimelineStore } from './timelineStore'
import { isDark, onColoursChanged } from '../ui/palette'
import type { Box } from '../api/types'

/** `box` changes twice a second and brings this up to date. */
export function Legend({ store }: { store: TimelineStore; box: Box }) {
  const place = useRef<HTMLUListElement>(null)
  const dark = useDark(place.current)
  const used = new Set<string>()
  for (const lane of store.lanes.values()) for (const { variant } of lane) used.add(variant)
  return (
    <ul class={styles.legend} ref={place} aria-label="Variants">
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
    return onColoursChanged(() => draw((times) => times + 1))
  }, [])
  return element !== null && isDark(element)
}
