import { defineConfig } from 'vitest/config'

export default defineConfig({
  // The documentation's examples, in tests with a document of their own, too.
  server: { fs: { allow: ['..'] } },
  test: {
    // However busy the machine is, a test that is right passes.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // Tests read the style sheets' modules as they are, with the names of their classes as written.
    css: { include: /\.module\.css/, modules: { classNameStrategy: 'non-scoped' } },
    // What needs no document shares a process: to start one for each file takes longer than its tests.
    projects: [
      { extends: true, test: { name: 'without a document', include: ['test/*.test.ts'], isolate: false, unstubGlobals: true } },
      { extends: true, test: { name: 'in a document', include: ['test/*.test.tsx'] } },
    ],
  },
})
