// Starts the browser camera's page.

import '../ui/global.css'

import { render } from 'preact'

import { applyTheme, savedTheme } from '../ui/theme'
import { CameraPage } from './CameraPage'

const root = document.getElementById('app')
if (!root) throw new Error('the page has no #app')
applyTheme(savedTheme())
render(<CameraPage />, root)
