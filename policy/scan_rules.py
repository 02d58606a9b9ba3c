"""The orders in which words make an instruction to the reader: short patterns over a line of concepts, see `scan_lexicon`.

A line has one letter for each word (`O` for ignore, `P` for previous, `.` for a word that means nothing here) and `|` where a
sentence ends. Each sentence is looked at for itself, and only with the rules whose concepts it has, so that most cost no look.
Every gap is bounded: the work is in proportion to the line, whatever the line is. Pure.
"""

import re
from collections.abc import Iterator
from itertools import permutations

from amem.policy.scan_needles import compiled
from amem.typed import NamedTuple

_O = "(?:O|N.?F|F.{0,3}N)"
_GROUPS = {"O": _O, "0": "(?:0|N.{0,3}4|4.{0,3}N)"}
"""Concepts that two others make together: not to follow is to ignore, to be in force no longer is to be void."""
_KEPT = "(?<!N.)(?<!N..)"
"""Not said of what is not to be done; behind the first concept, so that a search passes over the others."""


class Rule(NamedTuple):
    """A pattern over a sentence of concepts, and the class of what it finds."""

    cls: str
    needs: tuple[str, ...]
    """Groups of concepts: without one of each the pattern cannot hold."""
    pattern: str


def _near(cls: str, within: int, groups: str) -> Rule:
    """One of each group of concepts, in any order, with at most so many words between two of them."""
    members = [_GROUPS.get(group, f"[{group}]" if len(group) > 1 else group) for group in groups.split()]
    between = f".{{0,{within}}}"
    return Rule(cls, tuple(groups.split()), "|".join(between.join(order) for order in permutations(members)))


def _said(cls: str, needs: str, pattern: str) -> Rule:
    return Rule(cls, tuple(needs.split()), pattern)


RULES = (
    # Take no notice of what you were told; it is void.
    _near("instruction", 4, "O PY IMR"),
    _near("instruction", 4, "O AS IM"),
    _near("instruction", 3, "O H IMR"),
    _said("instruction", "O PY Θm", f"{_O}.{{0,3}}[PY].?Θ|{_O}.{{0,3}}Y.?m"),
    _said("instruction", "O D P", f"{_O}.{{0,2}}D.?P.?$"),
    _near("instruction", 3, "O uτ IMR"),
    _near("instruction", 4, "O ASw k"),
    _said("instruction", "O APS", f"{_O}.?A.?P$|{_O}.?S.{{0,4}}P|{_O}.{{0,2}}P[.][Ts]"),
    _near("instruction", 5, "0 P IM"),
    _near("instruction", 4, "0 Y IMR"),
    _said("instruction", "0 Hτ IM", "0.{0,2}[Hτ].?[IM]|[Hτ].?[IM].{0,2}0"),
    _near("instruction", 3, "0 P R"),
    _said("instruction", "N P 4", "^N.{0,3}P.{0,3}4"),
    _said("instruction", "UY ε PAIRz", "U.{0,3}ε.{0,3}[PAIRz]|Y.?ε.{0,3}[PAIRz]"),
    _said("instruction", "N 4 U", "N.{0,5}4U.?$"),
    _near("instruction", 3, "V PY IM"),
    _said("instruction", "V P R U", "V.{0,2}P.{0,2}R.{0,3}U"),
    _said("instruction", "V Y Rzζ", "V.{0,2}Y.{0,2}[zRζ]"),
    _said("instruction", "g v OV ACIMPRYk", f"g.?v.{{0,2}}(?:{_O}|V).{{0,4}}[IMRPAYkC]"),
    _said("instruction", "g v LX DIKMb", "g.?v.{0,3}[XL].{0,3}[DbKMI]"),
    _said("instruction", "η w U", "η.?w.{0,2}U"),
    _said("instruction", "η F IMR", "ηF.{0,4}[PYAHτ].{0,2}[IMR]"),
    _said("instruction", "Y I V", "Y.{0,2}I.?V"),
    _said("instruction", "Y ν IRmΘ", "Yν[IRmΘ]"),
    _near("instruction", 4, "0 U IM"),
    _said("instruction", "OV ζ zRI", f"(?:{_O}|V).{{0,2}}ζ.?[zRI]"),
    _said("instruction", "ι ξ5", "^ι.?[ξ5]|N.?[ξ5].{0,12}ι"),
    _near("instruction", 4, "O τ IMR"),
    _near("instruction", 4, "O U k"),
    _said("instruction", "O m U", f"{_O}.{{0,2}}m.{{0,2}}U"),
    _near("instruction", 2, "O R ν"),
    _near("instruction", 4, "Φ PHτ I"),
    _near("instruction", 3, "Φ Y IM"),
    _near("instruction", 2, "Φ Y ζz"),
    _said("instruction", "h IR V SY", "h.?[IR].{0,4}V.{0,4}(?:S|Y.?[HIMD])"),
    _near("instruction", 3, "φ Y R"),
    _said("instruction", "U N ψ gGl", "U.?N.?ψ.{0,3}[gGl]"),
    _said("instruction", "τ gl v", "τ.{0,3}[gl].{0,2}v"),
    _near("instruction", 4, "J P IR N"),
    _said("instruction", "J IR 4 N", "J.{0,4}[IR].{0,5}(?:4.?N|N.?4)"),
    _near("instruction", 3, "N 4 U Rz"),
    _said("instruction", "n N Rz", "nn.{0,4}N.{0,2}[Rz]"),
    _said("instruction", "Γ A ω0", "Γ.?A.{0,8}[ω0]"),
    _said("instruction", "Y ζ 0φ", "Y.?ζ.{0,2}[0φ]"),
    _said("instruction", "P ω", "P.{0,3}[.]ω$"),
    _said("instruction", "ν IRΘ hF", "^[.]?ν.?[IR].{0,2}[hF].?$|ν[IRΘ]h"),
    _said("instruction", "ηV F IMR", "[ηV].?F.{0,3}[IMR]"),
    _said("instruction", "F Δ h", "F.?.?Δ.{0,2}h|Δ.?F.{0,3}h|Δ.{0,3}h.{0,2}F"),
    _near("instruction", 5, "O Δ h"),
    _near("instruction", 3, "n N U Rz"),
    _said("instruction", "U N 4 RzYI", "U.{0,2}N.{0,2}4.{0,3}[RzIY]"),
    _near("instruction", 3, "U N ψ Rz"),
    _said("instruction", "J gl N ζ", "J.{0,3}[lg].{0,3}N.?ζ"),
    _said("instruction", "n U g 9", "n.{0,3}U.{0,3}9.?g"),
    _said("instruction", "U n Π", "U.?n.{0,2}Π"),
    _said("instruction", "U Ψ", "U.{0,2}Ψ"),
    # Give away what is kept.
    _said("instruction", "1LTsXξρ RIM U k", "[1LTsXξρ].{0,3}[RIM].{0,2}U.{0,3}k"),
    _said("instruction", "w U N TsL", "^w.{0,2}U.?N.{0,3}[TsL]"),
    _near("instruction", 4, "TLρξX1 Ξ M YUH"),
    _near("instruction", 3, "TLρξX1 M H YU"),
    _near("instruction", 4, "TLρξX1 Ξ I YH"),
    _said("instruction", "1TXsξLρ Y IRM HKP", "[1TXsξLρ].{0,6}Y.?[IRM].?[HKP]"),
    _said("instruction", "ξTρ D Ω bς", "[ξTρ].{0,2}D.{0,6}Ω.{0,3}[bς]"),
    _said("instruction", "T1 H K", "^.?[T1].{0,2}(?:HK|KH).?$"),
    _said("instruction", "TLρX S Y D", "[TLρX]S.?YD"),
    _said("instruction", "w K U k", "w.{0,3}K.?U.{0,2}k"),
    _said("instruction", "w Y H M", "w.{0,5}Y.?HM"),
    _said("instruction", "TLρξX cΞAS H M", "[TLρξX].{0,2}[cΞAS].{0,3}HM|HM.{0,2}Ξ.?[TLρξX]"),
    _said("instruction", "ρ Ξ bς", "ρ.{0,3}Ξ.?[bς]"),
    _said("instruction", "L HKPY IM", f"L{_KEPT}.{{0,5}}[YHPK].{{0,2}}[MI]"),
    _said("instruction", "L M", f"L{_KEPT}.?.?M"),
    _said("instruction", "1TXsξ Y M", f"[TsXξ1]{_KEPT}.{{0,6}}Y.?[HP]?.?M"),
    _said("instruction", "1TXsξ Y HKP IR", f"[TsXξ1]{_KEPT}.{{0,2}}Y.{{0,1}}[HPK].{{0,1}}[IR]"),
    _said("instruction", "1LTsX M Y", "[LTsX1].{0,2}M.?Y"),
    _said("instruction", "1LTs 3 H M", "[LTs1]3.{0,3}HM|HM.?3.{0,3}[TL]"),
    _said("instruction", "TLs1 3 S YP", "[TLs1]3S.{0,2}[YP]"),
    _near("instruction", 5, "ρ IRM UkY"),
    _said("instruction", "ρ AS P", "ρ.{0,2}[AS].{0,4}P"),
    _said("instruction", "TLξρ YKM π", "[TLξρ]Y.{0,4}π|[TLξρ].{0,3}[KM].{0,5}π"),
    _said("instruction", "w IRM U", "^w[IRM].{0,2}U"),
    _said("instruction", "w Y IM", "^w.?Y.?[IM]"),
    _said("instruction", "L AS P", "L.?[AS].{0,2}P"),
    _said("instruction", "w Y HKPM", "w.?Y.?(?:[HP].?[MIR]|K|M)"),
    _said("instruction", "w τH U ksT", "^.?w.{0,4}[τH].?.?[skT].?U"),
    _said("instruction", "HY IM L", "[YH].{0,2}[MI].{0,2}L"),
    _said("instruction", "1LTs IMR U k", "[TsL1].{0,4}[IMR].?U.{0,4}k"),
    _said("instruction", "H IMR U k", "H.?[IMR].?U.{0,3}k"),
    _said("instruction", "L K", r"L(?<![NvΥ].)(?<!N..)[.]{0,2}[aYASHWDb9]{0,2}K"),
    _said("instruction", "1TsL 3 K", "[1TsL].?.?3.{0,4}K|3[1TL].{0,2}K|K.?3.?[TL1]"),
    _said("instruction", "s K", "(?:^.?|[dvUn3].?)s.{0,2}K|^s.?.?K"),
    _said("instruction", "1 K", "^1.?K.?$"),
    _said("instruction", "5 K", "^.{0,2}5.{0,2}K"),
    _said("instruction", "n L WKDb", "n.?L.{0,2}[WKDb]"),
    _said("instruction", "w KW", "^.?w[^9]{0,3}K.?$|^.{0,2}w[^9]{0,3}HW$|^.{0,4}K.{0,4}w$"),
    _said("instruction", "ξ K T 6", "ξ.{0,3}K.{0,5}T6"),
    # Send it away.
    _said("instruction", "X bD E", f"X{_KEPT}.{{0,5}}[bD].{{0,6}}E|[bD].{{0,3}}E.{{0,4}}X|X.{{1,5}}E.{{1,3}}b"),
    _said("instruction", "X AΞSY ςb Eχi8", f"X{_KEPT}.?[AΞSY].?[ςb].{{0,3}}[Eχi8]"),
    _said("instruction", "TX 7 Y8Eiχ", "[TX]7.{0,2}[Y8Eiχ]"),
    _said("instruction", "X Y μ", "XY.?μ"),
    _said("instruction", "X K χ", f"X{_KEPT}.{{0,4}}K.{{0,3}}χ"),
    _said("instruction", "K LX 6", "K.{0,6}[LX]6.{0,3}[Eiχ38q]"),
    _said("instruction", "X E A bDX", "XE.{0,2}A.{0,2}[bDX]"),
    _said("instruction", "T K Y x", "T.{0,2}K.{0,3}Y.?x"),
    _said("instruction", "π T 6 8", "π.{0,4}T6.{0,3}8"),
    _said("instruction", "Q f δ", "Q.{0,3}f.{0,2}δ"),
    _said("instruction", "U v TX b 3χ", "Uv.{0,2}[TX].{0,5}b.{0,4}[3χ]"),
    _said("instruction", "L Y W", "L(?<![NvΥ].)(?<!N..).?Y.?W"),
    _said("instruction", "gG v L", "[gG].?v[^N]{0,2}L"),
    _said("instruction", "S u k U", "S.{0,2}u.{0,2}k.?U"),
    _said("instruction", "X w U κ", "X.{0,2}w.?U.?κ"),
    _near("instruction", 7, "XL K E"),
    _said("instruction", "X W E", f"X{_KEPT}.{{0,6}}W.{{0,7}}E"),
    _said("instruction", "X K i", f"X{_KEPT}.{{0,6}}K.{{0,7}}i"),
    _said("instruction", "X b i", f"X{_KEPT}.{{0,6}}b.{{0,5}}i"),
    _said("instruction", "1LT DKb X E", f"[TL1]{_KEPT}.{{0,5}}[KbD].{{0,6}}X.{{0,5}}E"),
    _near("instruction", 7, "XTf 7 E8"),
    _said("instruction", "XT u b 8", "[XT].{0,2}u.{0,2}b.{0,5}8"),
    _said("instruction", "X S iE", "XS.{0,8}[iE]"),
    _said("instruction", "X A Kb7 8Ei", "XA.{0,2}[K7b].{0,4}[8Ei]"),
    _said("instruction", "X c K", "X.?c.?.?K"),
    _said("instruction", "DKWb X 6 E", "[KbWD].{0,5}X6.{0,3}E"),
    # Be somebody without bounds.
    _said("instruction", "U n N Rz", "n.{0,4}U.{0,8}N.{0,2}[Rz]|U.n.{0,8}N.{0,2}[Rz]"),
    _said("instruction", "n g N Rz", "n.{0,4}g.{0,4}N.{0,2}[Rz]"),
    _said("instruction", "n gl Z", "n.{0,6}[gl].{0,3}Z"),
    _said("instruction", "n U 5J", "n.{0,2}U.?v?.?[5J]"),
    _said("instruction", "U n Zg", "U.n.{0,5}[gZ]"),
    _said("instruction", "U N ψ 9Y", "U.?Nψ[9Y]"),
    _said("instruction", "5 N zU", "5.{0,5}N.?z|5.{0,5}U.{0,3}N.?z"),
    _said("instruction", "m O R", f"m.{{0,4}}{_O}.{{0,4}}R"),
    _said("instruction", "m N Rz", "m.{0,2}N.?[Rz]"),
    _said("instruction", "JU5α Z", "[UJ5α].{0,4}Z"),
    _said("instruction", "J gU N Rzζk", "J.{0,3}[gU].{0,5}N.{0,3}[Rzζk]"),
    _said("instruction", "J N z", "J.{0,10}N.?z"),
    _said("instruction", "U N Rz", "U.?N[Rz].{0,2}F|U.?Nz"),
    _near("instruction", 2, "φ Y zζ"),
    _said("instruction", "ζ zRIC φ0", "ζ.?[zRIC].{0,4}[φ0]"),
    # Go around a gate; keep it from people.
    _said("instruction", "V C KLXb", "V.?.?C.{0,8}[XLKb]"),
    _said("instruction", "B Ax QCM", "B.?[Ax].{0,2}[QCM]"),
    _said("instruction", "p B CQβE", "(?:^.?.?|[vgGUn].?)p.?B.{0,5}[CQβE]|Bp.{0,3}[CQβE]"),
    _said("instruction", "B β N C", "B.{0,8}β.{0,8}N.{0,2}C"),
    _said("instruction", "A p B", "Ap.{0,2}B"),
    _said("instruction", "β N C", "^.?β.?N.?C"),
    _said("instruction", "U N ψ C", "UNψ.{0,5}C"),
    _said("instruction", "d s u", "d.?N?s.{0,2}u"),
    _said("instruction", "N s u h6", "N.?s.?[h6].{0,3}u"),
    _near("instruction", 5, "N 1 2"),
    _said("instruction", "d N s u2", "dN.{0,2}s.{0,3}[u2]"),
    _said("instruction", "N L u h", "^N.?L.{0,2}u.{0,2}h"),
    _said("instruction", "1 2", "2.?1[.]*$"),
    _near("instruction", 4, "2 v N κ"),
    _said("instruction", "u v N κ", "u.?vN.?κ"),
    _said("instruction", "N s u", "^N.?s.{0,2}u"),
    _said("instruction", "r h6 HKλ u2", "r[h6].{0,2}[HKλ].{0,3}[u2]"),
    _said("instruction", "Λ uU2h", "Λ.{0,4}[uU2h]"),
    _said("instruction", "λ h u2", "λh.{0,4}[u2]"),
    _said("instruction", "d h λ", "^.?d.?h.?λ"),
    _said("instruction", "λ 6h Y σ", "λ.{0,1}[6h].{0,3}Yσ"),
    _said("instruction", "N s Y σ", "^.?Ns.{0,6}Yσ"),
    _said("instruction", "k λ U", "k.{0,4}λ.{0,3}U"),
    _said("instruction", "N 2u κ", "N.?.?[u2][^k]{0,2}κ"),
    _said("instruction", "2 N κ", "2.?N.{0,2}κ"),
    _near("instruction", 3, "N 2 s1"),
    _said("instruction", "ε N s", "ε.?N.?s"),
    _said("instruction", "dφVδX N u eκ", "[dφVδX].{0,12}Nu.?[eκ]"),
    _said("instruction", "g v δQf N C", "gv.{0,2}[δQf].{0,8}NC"),
    _said("instruction", "C p 4", "C.{0,4}p4"),
    _said("instruction", "N u κ h", "Nu.{1,3}κ.{0,2}h"),
    _said("instruction", "N Ш C", "N.?Ш.{0,4}C"),
    _said("instruction", "sB A C", "[sB].{0,2}A.?C"),
    _said("instruction", "sL N u", "[sL]Nu"),
    _said("instruction", "u N q k", "u.?Nq.?k"),
    _said("instruction", "N κ u2", "N.?κ.{0,2}[u2]"),
    _said("instruction", "N u v κe", "Nu.?.?v.{0,2}[κe]"),
    _said("instruction", "Й δXTfVBr", "^.{0,2}Й.?[δXTfVBr]|^.{0,2}[δXTfVBr].{0,8}Й"),
    _said("instruction", "λ h σ", "λ.?h.{0,4}σ"),
    _said("instruction", "N Lsλ U Ih", "N.?[Lsλ].{0,2}U.{0,2}k?.{0,2}[Ih]"),
    _said("instruction", "J h bςD N", "Jh[bςD].{0,2}N"),
    _said("instruction", "δXTfVB N s1 u2", "^.{0,2}[δXTfVB].{0,10}N.?[s1].?[u2]"),
    _said("instruction", "B N Csue", "^.{0,5}B.{0,6}N.{0,2}(?:[Csu]|e6)"),
    _said("instruction", "QδX N C", "^[.]?[QδX].{0,7}NC"),
    _said("instruction", "gG v VB Cβ", "[gG].{0,3}v.{0,2}(?:V.{0,3}C|B.{0,4}β)"),
    _said("instruction", "gG V C", "[gG].?V.{0,2}C"),
    _said("instruction", "gG v XTL K7b", "[gG].{0,4}v.{0,2}[XTL].{0,4}[K7b]"),
    _said("instruction", "V C pδB", "^.{0,2}V.{0,2}C.{0,3}[pδB]"),
    _said("instruction", "a N C", "a.{0,5}NC"),
    # Other people's things; lasting privilege; what is to last.
    _said("instruction", "t 1LTf", "t.{0,4}[fLT1].{0,2}t"),
    _said("instruction", "1LTf o t", "[fLT1].{0,5}o.?t"),
    _said("instruction", "r p a", "r.{0,3}p.{0,8}a"),
    _said("instruction", "r p R", "r.{0,6}pR"),
    _said("instruction", "r A p", "r.{0,3}A.?p"),
    _said("instruction", "rT Y μ", "[rT].{1,9}Y.{0,2}μ"),
    _said("instruction", "δ h λ", "δ.?h.{0,5}λ"),
    _said("instruction", "r Y μ Ts", "r.{0,2}Y.?μ.{0,3}[Ts]"),
    _said("instruction", "r h RI μ", "rh[RI].{0,3}μ"),
    _said("instruction", "A ςb ΣpvδTfNO", "^.?A.?p?.?[ςb].{0,4}Σ|^.?Ap[ςb].{0,3}[pvδTfNO]"),
    _said("instruction", "A p σ", "A.?p.?σ"),
    _said("instruction", "δ h N sC", "δ.?h.{0,3}N[sC]"),
    _said("instruction", "γB U VOLXα", "[γB]U.{0,2}[VOLXα]"),
    _said("instruction", "aτ γ U", "[aτ].{0,5}γU"),
    _said("instruction", "r p a", "r.{0,3}a.{0,9}p"),
    _said("instruction", "r N C", "r[^VN]{0,10}N[^VN]{0,2}C"),
    _said("instruction", "gG N C", "[gG].{0,2}N.?[v.ψ].{0,2}C"),
    _said("instruction", "4 j u", "4j.?u"),
    _said("instruction", "O t", f"{_O}.{{0,2}}t"),
    _said("instruction", "r μ a", "r.{0,4}μ.{0,8}a"),
    _said("instruction", "Γ j a", "Γ[^a6]{1,6}j.?9?a"),
    _said("instruction", "Γ j u", "Γ.{1,6}j.{1,6}u$"),
    _said("instruction", "rT Y u a", "[rT].?Y.{0,3}u.{0,4}a"),
    _said("instruction", "a S", "a.{0,3}aS|a.{0,2}S.?$"),
    _said("instruction", "r h A ςb", "rh[.]?A{1,2}[ςb]"),
    _said("instruction", "T 3 o btu", "T3.{0,4}o[btu]"),
    _said("instruction", "T 3 b u P", "T3.{0,4}b.{0,3}u.?P"),
    _said("instruction", "f o μb", "f.{0,2}o.{0,3}[μb]"),
    _said("instruction", "f N t", "f.{0,3}N.{0,2}t"),
    _said("instruction", "α t TfL", "α.?q?.?t.{0,5}[TfL]"),
    # Addressed to every reader.
    _said("broadcast", "A gG γδ h", "A.{0,4}[gG].{0,3}[γδ].{0,4}h|A.{0,4}[gG].{0,4}h.{0,2}[γδ]"),
    _said("broadcast", "A gG δ γ", "A.{0,4}[gG].{0,6}(?:δ.{0,3}γ|γ.{0,3}δ)"),
    _said("broadcast", "gl eκ h", "g.{0,3}[eκ].?h|l.?eh"),
    _said("broadcast", "j h Ж gGl", "j.{0,2}h.{0,4}Ж.{0,3}[gGl]"),
    _said("broadcast", "g v n", "g.{0,5}vn"),
    _said("broadcast", "gG n v XTLδf", "[gG].?n.?v.?.?[XTLδf]"),
    _said("broadcast", "g k q", "^.{0,2}g.?kq"),
    _said("broadcast", "X h x gG", "X.?h.{0,4}x.?[gG]"),
    _said("broadcast", "rTX h A U", "[rTX].{0,2}h.{0,3}A.{0,2}U"),
    _said("broadcast", "g θ", "gθ.{0,2}[TXLdNv]"),
    _said("broadcast", "y θ", "^y.?[.]?θ"),
    _said("broadcast", "θ gG", "^.?θ[gG]"),
    _said("broadcast", "y g", "^y.?g"),
    _said("broadcast", "j U G", "jU.?9.?G"),
    _said("broadcast", "XT h A U", "[XT].?h.{0,3}A.{0,2}U"),
    _said("broadcast", "X h Ao gG", "X.?h.{0,3}[Ao].{0,2}[gG]"),
    _said("broadcast", "q9 A Gg", "^(?:y.?)?[q9].?A.?.?[gG]"),
    _said("broadcast", "y A Gg", "^y.{0,2}A.{0,2}[gG]"),
    _said("broadcast", "y gGl", "^y.?q?.?[gGl]"),
    _said("broadcast", "A Gg e h", "A.{0,2}[gG].{0,1}e.{0,1}h"),
    _said("broadcast", "Ggl e h", "[jA].{0,4}[gGl].{0,2}e.?h|[gG].?eh"),
    _said("broadcast", "j U g", "jU.?.?.?g"),
    _said("broadcast", "1TXs h Ao Gg", "[XTs1].?h.{0,2}[Ao].{0,1}[gG]"),
    _said("broadcast", "X h A DR U", "X.?h.{0,3}A.?D.?U"),
)


UNSPACED_RULES = (
    *RULES,
    # The line has the known words alone, so they stand close.
    _near("instruction", 3, "O PAH IMR"),
    _near("instruction", 1, "L HM MI"),
    _near("instruction", 0, "L K"),
    _near("instruction", 1, "w K"),
    _near("instruction", 3, "KD X E"),
    _near("instruction", 3, "K X 8"),
    _near("instruction", 1, "PH IM w"),
    _near("instruction", 2, "L kPH IM"),
    _near("instruction", 3, "0 P IR"),
    _near("instruction", 3, "O P k"),
    _near("instruction", 5, "U Z"),
    _near("instruction", 3, "p B"),
    _near("broadcast", 3, "A g v"),
)


class Hit(NamedTuple):
    """A rule that holds: the class, and the letters of the line that it holds for."""

    cls: str
    first: int
    last: int


class Rules:
    """Rules to look for, and which of them may hold in a sentence of which concepts: remembered, bounded."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self._rules = rules
        self._needs = [_need(rules, place) for place in range(max(len(rule.needs) for rule in rules))]
        self._known: dict[frozenset[str], tuple[tuple[str, re.Pattern[str]], ...]] = {}

    def hits(self, line: str) -> Iterator[Hit]:
        """Of each sentence of a line of concepts the first rule of each class that holds."""
        at = 0
        for sentence in line.split("|"):
            there = frozenset(sentence)
            if len(there) > 1:
                held = ""
                rules = self._known.get(there)
                for cls, pattern in self._learn(there) if rules is None else rules:
                    if cls != held and (found := pattern.search(sentence)) is not None:
                        yield Hit(cls, at + found.start(), at + found.end() - 1)
                        held = cls
            at += len(sentence) + 1

    def _learn(self, there: frozenset[str]) -> tuple[tuple[str, re.Pattern[str]], ...]:
        concepts = made(there)
        left = -1
        for without, meeting in self._needs:
            met = without
            for concept in concepts:
                met |= meeting.get(concept, 0)
            left &= met
        holding = tuple((rule.cls, compiled(rule.pattern)) for rule in _picked(self._rules, left))
        if len(self._known) >= _KNOWN_LIMIT:
            self._known.clear()
        self._known[there] = holding
        return holding


_KNOWN_LIMIT = 20_000


def _need(rules: tuple[Rule, ...], place: int) -> tuple[int, dict[str, int]]:
    """Of one group of each rule, a bit a rule: the rules that have no such group, and those that each concept meets it of.

    Sentences often have concepts together that none had before: which rules they may meet is a few steps a concept, none a rule.
    """
    without, meeting = 0, dict[str, int]()
    for number, rule in enumerate(rules):
        if place >= len(rule.needs):
            without |= 1 << number
        else:
            for concept in set(rule.needs[place]):
                meeting[concept] = meeting.get(concept, 0) | 1 << number
    return without, meeting


def _picked(rules: tuple[Rule, ...], bits: int) -> Iterator[Rule]:
    while bits:
        lowest = bits & -bits
        yield rules[lowest.bit_length() - 1]
        bits ^= lowest


def made(there: frozenset[str]) -> frozenset[str]:
    """The concepts of a sentence, with those that two of them make together."""
    return there.union(*(whole for whole, parts in (("O", "NF"), ("0", "N4")) if there.issuperset(parts)))


SPACED, UNSPACED = Rules(RULES), Rules(UNSPACED_RULES)
