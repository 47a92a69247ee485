// The configuration in force: what was set on this box first, each value with where it is from.

import page from './Settings.module.css'
import styles from './ConfigCard.module.css'

import { useState } from 'preact/hooks'

import { classes } from '../ui/classes'
import { plural } from '../ui/format'
import { type ConfigKey, grouped, isSet, matching, type Origin, SET, written } from './configuration'

export function ConfigCard({ keys }: { keys: readonly ConfigKey[] }) {
  const [search, setSearch] = useState('')
  const [onlySet, setOnlySet] = useState(false)
  const found = matching(onlySet ? keys.filter(isSet) : keys, search)
  return (
    <section class={`${styles.config} card`} aria-labelledby="config-title" data-testid="config">
      <header>
        <h2 id="config-title">Configuration <span class="muted">in force since the start</span></h2>
        <label class={classes(page.search, styles.search)}>
          <span class="visually-hidden">Search the configuration</span>
          <input type="search" placeholder="Search keys, values, meanings" value={search} autocomplete="off" spellcheck={false} onInput={(event) => setSearch(event.currentTarget.value)} />
        </label>
        <label class={styles.only}>
          <input type="checkbox" checked={onlySet} onChange={(event) => setOnlySet(event.currentTarget.checked)} /> Only what was set
        </label>
        <p class={`muted ${styles.found}`} role="status" data-testid="found">{plural(found.length, 'key')} of {keys.length}</p>
      </header>
      {grouped(found).map((group) => (
        <section key={group.title} class={classes(styles.group, group.title === SET && styles.setGroup)} aria-label={group.title}>
          <h3>{group.title === SET ? group.title : <code>{group.title}</code>}</h3>
          <ul>{group.keys.map((key) => <Key key={key.key} about={key} />)}</ul>
        </section>
      ))}
      {found.length === 0 && <p class={`${styles.nothing} muted`}>{onlySet && !search ? 'Nothing was set: every key has its default.' : 'No key has these words.'}</p>}
    </section>
  )
}

function Key({ about }: { about: ConfigKey }) {
  const { key, value, origin, doc, expected } = about
  const differs = written(value) !== written(about.default)
  return (
    <li class={styles.key} data-testid="key" data-key={key} data-origin={origin}>
      <code>{key}</code>
      <code class={styles.value} data-testid="value">{written(value)}</code>
      <span class={classes(styles.origin, styles[origin])} title={ORIGINS[origin]}>{origin}</span>
      <p class={styles.doc} title={`must be ${expected}`}>
        {doc}
        {isSet(about) && differs && <span class="muted"> (default: <code>{written(about.default)}</code>)</span>}
      </p>
    </li>
  )
}

const ORIGINS: Record<Origin, string> = {
  default: 'Not set',
  file: 'From the configuration file',
  environment: 'From an environment variable',
  option: 'From the command line, which wins over the file',
  stored: 'Chosen on this page or with edgebox models default',
}
