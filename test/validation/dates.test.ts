import { expect } from "chai";
import { createDateReader, isPhpFormat, parseDateText, resolveDate } from "../../src/validation/dates.ts";

describe("parseDateText", () => {
  const cases: readonly [text: string, iso: string | undefined][] = [
    ["2026-03-28", "2026-03-28T00:00:00.000Z"],
    ["2026-3-8", "2026-03-08T00:00:00.000Z"],
    ["2026/03/28 14:30", "2026-03-28T14:30:00.000Z"],
    ["2026-03-28T14:30:00Z", "2026-03-28T14:30:00.000Z"],
    ["2026-03-28T14:30:00.1", "2026-03-28T14:30:00.100Z"],
    ["2026-03-28 14:30:00.123999 -0530", "2026-03-28T20:00:00.123Z"],
    ["2026-03-28T00:30:00+02", "2026-03-27T22:30:00.000Z"],
    ["28 mar 2026", "2026-03-28T00:00:00.000Z"],
    ["March 28, 2026 14:30", "2026-03-28T14:30:00.000Z"],
    ["Sat, 28 Mar 2026 14:30:00 GMT", "2026-03-28T14:30:00.000Z"],
    ["0001-01-01", "0001-01-01T00:00:00.000Z"],
    ["9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"],
    ["9999-12-31T23:59:59-01:00", undefined],
    ["0001-01-01T00:00:00+01:00", undefined],
    ["0000-01-01", undefined],
    ["2026-02-29", undefined],
    ["2026-00-10", undefined],
    ["2026-01-00", undefined],
    ["2026-01-01T24:00", undefined],
    ["2026-01-01T10:60", undefined],
    ["2026-01-01T10:00:60", undefined],
    ["2026-01-01T10:00+16:00", undefined],
    ["3/4/2026", undefined],
    ["28 Marz 2026", undefined],
    ["today", undefined],
    ["", undefined],
    [`2026-03-28${" ".repeat(100)}`, undefined],
  ];
  for (const [text, iso] of cases) {
    it(`reads ${JSON.stringify(text.slice(0, 40))} as ${iso ?? "no date"}`, () => {
      expect(parseDateText(text)?.toISOString()).to.equal(iso);
    });
  }
});

describe("resolveDate", () => {
  const now = new Date("2026-03-28T14:30:00Z");
  const cases: readonly [text: string, iso: string | undefined][] = [
    ["now", "2026-03-28T14:30:00.000Z"],
    ["today", "2026-03-28T00:00:00.000Z"],
    ["tomorrow", "2026-03-29T00:00:00.000Z"],
    ["yesterday", "2026-03-27T00:00:00.000Z"],
    ["+1 week", "2026-04-04T14:30:00.000Z"],
    ["-90 minutes", "2026-03-28T13:00:00.000Z"],
    ["+2 months", "2026-05-28T14:30:00.000Z"],
    ["-18 years", "2008-03-28T14:30:00.000Z"],
    ["2026-01-01", "2026-01-01T00:00:00.000Z"],
    ["starts_at", undefined],
    ["constructor", undefined],
  ];
  for (const [text, iso] of cases) {
    it(`reads ${text} as ${iso ?? "no date"}`, () => {
      expect(resolveDate(text, now)?.toISOString()).to.equal(iso);
    });
  }
});

describe("createDateReader", () => {
  const cases: readonly [format: string, text: string, iso: string | undefined][] = [
    ["Y-m-d", "2026-03-28", "2026-03-28T00:00:00.000Z"],
    ["Y-m-d", "2026-3-28", undefined],
    ["d.m.y", "28.03.69", "2069-03-28T00:00:00.000Z"],
    ["d.m.y", "28.03.70", "1970-03-28T00:00:00.000Z"],
    ["j F Y, g:i A", "8 March 2026, 12:05 AM", "2026-03-08T00:05:00.000Z"],
    ["l d M Y", "Saturday 28 Mar 2026", "2026-03-28T00:00:00.000Z"],
    ["l d M Y", "Sunday 28 Mar 2026", undefined],
    ["H:i", "14:30", "1970-01-01T14:30:00.000Z"],
    ["Y-m-d\\TH:i:s.uP", "2026-03-28T14:30:00.123456+02:00", "2026-03-28T12:30:00.123Z"],
    ["Y-m-d\\TH:i:s.vp", "2026-03-28T14:30:00.123Z", "2026-03-28T14:30:00.123Z"],
    ["U", "-1", "1969-12-31T23:59:59.000Z"],
    ["U", "99999999999", "5138-11-16T09:46:39.000Z"],
    ["d/m/Y", "31/04/2026", undefined],
    ["Y.m", "2026x03", undefined],
  ];
  for (const [format, text, iso] of cases) {
    it(`reads ${text} by ${format} as ${iso ?? "no date"}`, () => {
      expect(createDateReader(format)(text)?.toISOString()).to.equal(iso);
    });
  }
});

describe("isPhpFormat", () => {
  it("accepts letters that can be read back, and reads an escaped one as text", () => {
    expect(["Y-m-d", "H:i", "\\Q Y", "D, d M Y H:i:s O"].every(isPhpFormat)).to.equal(true);
  });

  it("refuses unknown letters and two for the same part", () => {
    expect(["Q", "YYYY-mm-dd", "Y d j", "c"].some(isPhpFormat)).to.equal(false);
  });
});
