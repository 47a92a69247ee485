// Switches between the system's theme, light and dark.

import styles from './ThemeButton.module.css'

import { useState } from 'preact/hooks'

import { applyTheme, nextTheme, savedTheme, type Theme } from './theme'

const WORDS: Readonly<Record<Theme, string>> = { auto: 'Auto', light: 'Light', dark: 'Dark' }

export function ThemeButton() {
  const [theme, setTheme] = useState<Theme>(savedTheme)
  const change = () => {
    const next = nextTheme(theme)
    applyTheme(next)
    setTheme(next)
  }
  return (
    <button
      type="button"
      class={styles.theme}
      onClick={change}
      aria-label={`Theme: ${WORDS[theme]}. Change to ${WORDS[nextTheme(theme)]}`}
      title="Theme: as the system says, light, or dark"
    >
      <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
        <circle cx="8" cy="8" r="6.2" fill="none" stroke="currentColor" stroke-width="1.6" />
        <path d="M8 1.8a6.2 6.2 0 0 1 0 12.4Z" fill="currentColor" />
      </svg>
      <span>{WORDS[theme]}</span>
    </button>
  )
}
