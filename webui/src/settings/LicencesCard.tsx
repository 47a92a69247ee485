// Every installed package with its licence, as its own metadata name it.

import page from './Settings.module.css'
import styles from './LicencesCard.module.css'

import { useState } from 'preact/hooks'

import { plural } from '../ui/format'
import { type Package, packagesWith } from './configuration'

export function LicencesCard({ packages }: { packages: readonly Package[] }) {
  const [search, setSearch] = useState('')
  const found = packagesWith(packages, search)
  return (
    <section class={`${styles.licences} card`} aria-labelledby="licences-title" data-testid="licences">
      <header>
        <h2 id="licences-title">Licences</h2>
        <label class={`${page.search} ${styles.search}`}>
          <span class="visually-hidden">Search packages and licences</span>
          <input type="search" placeholder="Search" value={search} autocomplete="off" spellcheck={false} onInput={(event) => setSearch(event.currentTarget.value)} />
        </label>
      </header>
      <p class="muted" role="status">{plural(found.length, 'package')} of {packages.length} installed; edgebox itself is under Apache-2.0, models have their own.</p>
      <div class={`scroll-x ${styles.packages}`} tabIndex={0} role="region" aria-label="Packages">
        <table>
          <thead><tr><th scope="col">Package</th><th scope="col">Version</th><th scope="col">Licence</th></tr></thead>
          <tbody>
            {found.map(({ name, version, licence }) => (
              <tr key={name} data-package={name}>
                <th scope="row">{name}</th><td>{version}</td><td>{licence ?? <span class="muted">says none</span>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}
