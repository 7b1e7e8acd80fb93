import type { ReactNode } from 'react'
import classes from './full-page.module.css'

/** A narrow form in the middle of the page, without the frame. */
export const FullPage = ({ children }: { children: ReactNode }) => (
  <main className={classes.screen}>
    <div className={classes.box}>{children}</div>
  </main>
)
