// Something to type elsewhere, with a button that copies it.

import styles from './Command.module.css'

import { useRef, useState } from 'preact/hooks'

import { classes } from './classes'
import { copyText } from './download'

interface CommandProps {
  text: string
  /** Added to its own class. */
  class?: string | undefined
}

export function Command({ text, class: added }: CommandProps) {
  const [copied, setCopied] = useState(false)
  const code = useRef<HTMLElement>(null)
  const copy = async () => {
    if (!(await copyText(text, code.current))) return
    setCopied(true)
    window.setTimeout(() => setCopied(false), 2000)
  }
  return (
    <div class={classes(styles.command, added)}>
      {/* Lines break between words, not behind the dashes of options. */}
      <code ref={code}>{text.split(' ').map((word, at) => <>{at > 0 && ' '}<span key={at}>{word}</span></>)}</code>
      <button type="button" onClick={() => void copy()} aria-label={`Copy ${text}`}>
        <span aria-live="polite">{copied ? 'Copied' : 'Copy'}</span>
      </button>
    </div>
  )
}
