// A row of tabs as the keyboard and screen readers know it: arrows move, the panel follows.

import styles from './Tabs.module.css'

import type { ComponentChildren } from 'preact'
import { useId, useRef } from 'preact/hooks'

interface TabsProps {
  label: string
  tabs: ReadonlyArray<{ key: string; name: string }>
  selected: string
  onSelect: (key: string) => void
  children: ComponentChildren
}

export function Tabs({ label, tabs, selected, onSelect, children }: TabsProps) {
  const id = useId()
  const row = useRef<HTMLDivElement>(null)
  const move = (event: KeyboardEvent) => {
    const at = tabs.findIndex(({ key }) => key === selected)
    const last = tabs.length - 1
    const to = { ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at === 0 ? last : at - 1, Home: 0, End: last }[event.key]
    const tab = to === undefined ? undefined : tabs[to]
    if (!tab) return
    event.preventDefault()
    onSelect(tab.key)
    row.current?.querySelector<HTMLElement>(`#${CSS.escape(`${id}-${tab.key}`)}`)?.focus()
  }
  return (
    <>
      <div class={styles.tabs} role="tablist" aria-label={label} ref={row} onKeyDown={move}>
        {tabs.map(({ key, name }) => (
          <button
            key={key} id={`${id}-${key}`} type="button" role="tab" class={styles.tab}
            aria-selected={key === selected} aria-controls={`${id}-panel`} tabIndex={key === selected ? 0 : -1}
            onClick={() => onSelect(key)}
          >
            {name}
          </button>
        ))}
      </div>
      <div id={`${id}-panel`} role="tabpanel" aria-labelledby={`${id}-${selected}`} class={styles.tabPanel}>
        {children}
      </div>
    </>
  )
}
