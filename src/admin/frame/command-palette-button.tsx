import { UnstyledButton } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { IconSearch } from '@tabler/icons-react'
import { lazy, Suspense, useEffect } from 'react'
import { useObservable } from '../api/observable'
import type { Me } from '../api/schema'
import classes from './frame.module.css'
import { openings, openPalette } from './palette-state'
import barClasses from './phone-bar.module.css'

const PRELOAD_DELAY_MS = 1_000 // by then, the first screen has loaded

const loadPalette = () => import('./command-palette')
const CommandPalette = lazy(async () => ({ default: (await loadPalette()).CommandPalette }))

/** Opens the command palette. */
export const CommandPaletteButton = ({ isPhone }: { isPhone: boolean }) => (
  <UnstyledButton
    className={isPhone ? barClasses.item : classes.link}
    onClick={openPalette}
    aria-keyshortcuts="Control+K"
  >
    <IconSearch size={18} stroke={1.6} aria-hidden />
    <span>Find</span>
    {!isPhone && <kbd className={classes.shortcut}>Ctrl K</kbd>}
  </UnstyledButton>
)

/** The command palette, which its button or Ctrl-K opens. */
export function LazyCommandPalette({ me }: { me: Me }) {
  const opening = useObservable(openings)
  useHotkeys([['mod+K', openPalette]], [], true)
  useEffect(() => {
    // A failed download is repeated when the palette is opened.
    const timer = setTimeout(() => loadPalette().catch(() => {}), PRELOAD_DELAY_MS)
    return () => clearTimeout(timer)
  }, [])
  return <Suspense>{opening > 0 && <CommandPalette key={opening} me={me} />}</Suspense>
}
