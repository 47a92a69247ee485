// A figure that is seen first, with its name and a note; several stand side by side.

import styles from './Stat.module.css'

import type { ComponentChildren } from 'preact'

export function Stats({ children }: { children: ComponentChildren }) {
  return <div class={styles.stats}>{children}</div>
}

interface StatProps {
  name: string
  value: string
  note: string
  title?: string | undefined
  children?: ComponentChildren
}

export function Stat({ name, value, note, title, children }: StatProps) {
  return (
    <div class={styles.stat} title={title}>
      <h2>{name}</h2>
      <p class={styles.value}>
        {value} <span class="muted">{note}</span>
      </p>
      {children}
    </div>
  )
}
