import type { LambdaRun } from '../../api/schema'
import classes from './lambda.module.css'

/** The lines that a run wrote to its log, with when and how urgent they are. */
export const LogLines = ({ lines }: { lines: LambdaRun['logs'] }) => (
  <ol className={classes.log} aria-label="Log">
    {lines.map(({ at, level, text }, n) => (
      <li key={n} className={classes[level]} title={level}>
        <span>{at} ms</span>
        <span>{text}</span>
      </li>
    ))}
  </ol>
)
