import { useEffect, useRef, useState, type JSX } from "react";
import { Icon } from "./icon.tsx";
import "./search-box.css";

const pauseMilliseconds = 350;

/**
 * A field for a search text, which is applied after a pause in typing, or at Enter. `/` moves the
 * focus here.
 */
export function SearchBox({
  label,
  value,
  onSearch,
}: {
  readonly label: string;
  readonly value: string;
  readonly onSearch: (text: string) => void;
}): JSX.Element {
  const [text, setText] = useState(value);
  const [given, setGiven] = useState(value);
  const input = useRef<HTMLInputElement>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  // The browser's Back, or a link, has set another text.
  if (value !== given) {
    setGiven(value);
    // Keeps a space at the end, which is typed before the next word.
    if (value !== text.trim()) setText(value);
  }
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      const isTyping =
        (event.target as HTMLElement).closest("input, textarea, select, [role=dialog]") !== null;
      if (event.key !== "/" || isTyping) return;
      event.preventDefault();
      input.current?.focus();
    };
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  }, []);
  useEffect(() => () => clearTimeout(timer.current), []);
  const search = (next: string, wait: number): void => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => onSearch(next.trim()), wait);
  };
  return (
    <div className="search-box">
      <Icon name="search" />
      <input
        ref={input}
        className="input"
        type="search"
        dir="auto"
        aria-label={label}
        placeholder={label}
        maxLength={100}
        value={text}
        onChange={({ currentTarget }) => {
          setText(currentTarget.value);
          search(currentTarget.value, pauseMilliseconds);
        }}
        onKeyDown={({ key }) => {
          if (key === "Enter") search(text, 0);
        }}
      />
    </div>
  );
}
